package systems

import (
	"slices"
	"strings"
)

// Named returns the system that a person names on the command line: a system of the registry, or a router and a batcher
// as ROUTER+BATCHER, with the planner static and the scaler fixed. A system's name wins, since some have a plus in
// theirs.
func Named(text string) (System, error) {
	router, batcher, composed := strings.Cut(text, "+")
	if !composed || slices.Contains(Names(), text) {
		return Get(text)
	}
	s := System{Name: text, Router: router, Batcher: batcher}
	if _, err := NewRouter(router, s.Options); err != nil {
		return System{}, err
	}
	if _, err := NewBatcher(batcher, s.Options); err != nil {
		return System{}, err
	}
	return s, nil
}
