package systems

import (
	"slices"
	"strings"
)

// Named returns a system by the name that users type: a system of the list, or ROUTER+BATCHER with the planner static
// and the scaler fixed. A system's name wins, since some contain a plus.
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
