package systems

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Set sets options by name as Options.Set does, to texts or to values of their own types, and refuses those that no
// component of the system reads. The components are those after all options are set, since the option keep chooses one.
// The error is an OptionErrors.
func (s *System) Set(given map[string]any) error {
	out := take(&s.Options, given)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if x := option(name); x != nil && !s.reads(x) {
			out = append(out, &OptionError{Option: name, Key: x.Key(), Text: s.unread(x)})
		}
	}
	return out.orNil()
}

// Components returns the components of the system in the order of their kinds, with the keep-alive rule where its
// scaler has one.
func (s System) Components() []Component {
	names := map[Kind]string{
		Planner: cmp.Or(s.Planner, asWritten), Router: s.Router, Batcher: s.Batcher, Scaler: cmp.Or(s.Scaler, fixed),
		Engine: "engine",
	}
	if names[Scaler] == ratebands {
		names[KeepAlive] = cmp.Or(s.Options.KeepAlive.Rule, cheapest)
	}
	var out []Component
	for _, k := range Kinds() {
		for _, p := range Components(k) {
			if p.Name == names[k] {
				out = append(out, p)
			}
		}
	}
	return out
}

// reads reports whether a component of the system reads an option.
func (s System) reads(o *Option) bool {
	return slices.ContainsFunc(s.Components(), func(p Component) bool {
		_, ok := o.reader(p)
		return ok
	})
}

// unread says which components would read an option, and which components the system has instead.
func (s System) unread(o *Option) string {
	var has []string
	for _, p := range s.Components() {
		if slices.ContainsFunc(o.Readers, func(r Reader) bool { return r.Kind == p.Kind }) {
			has = append(has, "the "+p.String())
		}
	}
	instead := "none"
	if len(has) > 0 {
		instead = and(has)
	}
	return fmt.Sprintf("is read by %s; system %s has %s: leave it out, or choose a component that reads it", o.ReadBy(),
		s.Name, instead)
}
