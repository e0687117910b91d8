package config

import (
	"maps"
	"slices"
	"strings"
)

// Names lists the registered names that a file may use. A nil list is not checked.
type Names struct {
	Systems, Routers, Batchers, Planners, Scalers []string
	// Settings lists the keys of a system that this program acts upon, such as batch or timeout; further settings are
	// listed as options.NAME. A setting that would be passed over in silence is a problem.
	Settings []string
}

// settings are the keys of a system that may or may not mean something, depending on its parts.
var settings = []string{"planner", "scaler", "batch", "timeout", "slack", "replan", "budget"}

// CheckNames reports every system, router, batcher, planner, scaler and setting that the file names and n does not
// list.
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
		if n.Settings == nil {
			return
		}
		given := slices.DeleteFunc(slices.Clone(settings), func(k string) bool { return !f.has(path + "." + k) })
		for _, k := range slices.Sorted(maps.Keys(s.Options)) {
			given = append(given, "options."+shown(k))
		}
		for _, k := range given {
			if !slices.Contains(n.Settings, k) {
				hint := similarSetting(k, n.Settings)
				c.addf(path+"."+k, "no system here uses this setting%s", hint)
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

// similarSetting compares the last part of a setting only: a common "options." would make short names look alike.
func similarSetting(k string, known []string) string {
	prefix, word := "", k
	if rest, ok := strings.CutPrefix(k, "options."); ok {
		prefix, word = "options.", rest
	}
	var last []string
	for _, s := range known {
		if rest, ok := strings.CutPrefix(s, prefix); ok && !strings.Contains(rest, ".") {
			last = append(last, rest)
		}
	}
	hint, _ := didYouMean(word, last)
	return hint
}
