// Package infless packs instances of many small models onto shared machines as INFless (ASPLOS 2022, §3.2 and §3.4)
// does. The largest batches that the load fills come first. Each instance goes where its rate per resource is highest
// and the fragment that it leaves is smallest. What runs, and the bounds of a function's load, are the product's
// (packing.Planner).
//
// An exact program (MinResources) and a bound of ours (CapacityBound) say how far from the best plan the greedy rule
// is.
package infless

import (
	"github.com/sluice-serving/sluice/internal/planner/packing"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Options of New. The zero value is INFless.
type Options struct {
	packing.Options
	// Balanced packs by the product's rule instead of Algorithm 1, and so does Dense.
	Balanced bool
	// Undivided compares instances by their rate instead of their rate per resource, as the authors' release does.
	Undivided bool
	// Fastest uses for every batch size only the part that serves it fastest, on the first machine with room (§5.2,
	// without RS).
	Fastest bool
	// Uniform gives all instances of a function the same batch size and part: those that cost least per query (BATCH,
	// SC 2020, as §5.1 of INFless extends it).
	Uniform bool
	// First places on the first machine with room instead of by Eq. 10.
	First bool
}

// New returns a planner with the options.
func New(p profile.Profile, o Options) *packing.Planner {
	out := o.Options
	out.Name = "infless"
	if !o.Balanced && !o.Dense {
		out.Rule = algorithm1{undivided: o.Undivided, first: o.First || o.Fastest}
	}
	switch {
	case o.Uniform:
		out.Late, out.Choose = true, cheapest
	case o.Fastest:
		out.Choose = fastest
	}
	return &packing.Planner{Profile: p, Options: out}
}
