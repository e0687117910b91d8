package systems

import (
	"github.com/sluice-serving/sluice/engine"
)

// BatchersFor returns the names of the batching rules that work with a router (engine.Compatible), in the order of
// Batchers; none for an unknown router.
func BatchersFor(router string) []string {
	newRouter, err := find(Router, routers, router)
	if err != nil {
		return nil
	}
	r := newRouter(Options{})
	var out []string
	for _, b := range batchers {
		if engine.Compatible(r, b.make(Options{})) == nil {
			out = append(out, b.name)
		}
	}
	return out
}
