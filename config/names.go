package config

// Names lists the registered names that a file may use. A nil list is not checked.
type Names struct {
	Systems, Routers, Batchers, Planners, Scalers []string
}

// CheckNames reports every system, router, batcher, planner and scaler that the file names and n does not list.
func (f *File) CheckNames(n Names) error {
	c := &checker{f: f, bad: map[string]bool{}}
	check := func(s *System, path string) {
		for _, x := range []struct {
			word, key, what string
			known           []string
		}{
			{s.Name, "name", "system", n.Systems},
			{s.Router, "router", "router", n.Routers},
			{s.Batcher, "batcher", "batcher", n.Batchers},
			{s.Planner, "planner", "planner", n.Planners},
			{s.Scaler, "scaler", "scaler", n.Scalers},
		} {
			if x.word != "" && x.known != nil {
				c.known(x.word, x.known, path+"."+x.key, x.what)
			}
		}
	}
	check(&f.System, "system")
	for i := range f.Apps {
		if s := f.Apps[i].System; s != nil {
			check(s, at("apps", i)+".system")
		}
	}
	return c.err()
}
