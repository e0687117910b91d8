package infless

import "github.com/sluice-serving/sluice/internal/planner/packing"

// placements remembers, while one function is scheduled, where an instance of each of its sizes would be placed.
type placements struct {
	*packing.Cluster
	// take the first server with room
	first  bool
	shapes []*packing.Configuration // one configuration of each size
	shape  []int                    // by configuration, index into shapes
	where  []*packing.Group         // by shape: the fullest group with room; nil for none
	from   []int32                  // by shape, with first: no server before it has room
}

func placementsOf(c *packing.Cluster, f *packing.Function, first bool) *placements {
	x := &placements{Cluster: c, first: first}
	seen := make(map[[2]int64]int)
	for k := range f.Configurations {
		cfg := &f.Configurations[k]
		size := [2]int64{int64(cfg.Device), cfg.Memory}
		at, ok := seen[size]
		if !ok {
			at = len(x.shapes)
			seen[size] = at
			x.shapes = append(x.shapes, cfg)
		}
		x.shape = append(x.shape, at)
	}
	x.where, x.from = make([]*packing.Group, len(x.shapes)), make([]int32, len(x.shapes))
	for s := range x.shapes {
		x.refresh(s)
	}
	return x
}

// refresh finds where a shape would be placed.
func (x *placements) refresh(s int) {
	cfg := x.shapes[s]
	x.where[s] = nil
	if x.first {
		for ; int(x.from[s]) < len(x.Servers); x.from[s]++ {
			if g := x.Servers[x.from[s]].Group; g.Fits(cfg) {
				x.where[s] = g
				return
			}
		}
		return
	}
	for _, g := range x.Groups {
		if g.Fits(cfg) {
			x.where[s] = g
			return
		}
	}
}

// place places an instance and updates where others would be placed. Only one server has changed, and it has less room
// than before.
func (x *placements) place(k int, cfg *packing.Configuration) packing.Placed {
	at := x.from[x.shape[k]]
	if !x.first {
		g := x.where[x.shape[k]]
		at = g.Servers[len(g.Servers)-1]
	}
	before := x.Servers[at].Group
	on, _ := x.Allocate(at, cfg, -1)
	after := x.Servers[at].Group
	for s, g := range x.where {
		switch {
		case g == nil:
		case x.first:
			if x.from[s] == at {
				x.refresh(s)
			}
		case after.Fits(x.shapes[s]) && after.Compare(g) < 0:
			x.where[s] = after
		case g == before && len(before.Servers) == 0:
			x.refresh(s)
		}
	}
	return packing.Placed{Configuration: cfg, Server: at, Accelerator: on}
}

// minFragment is the least that Eq. 10 divides by. An instance that takes all that is left of a server would make it 0;
// the authors' release adds a thousandth. Servers that are filled up still come first, and among them the instance with
// the highest rate per resource.
const minFragment = 1e-3

// algorithm1 is the rule with its variants: see Options.
type algorithm1 struct{ undivided, first bool }

// Schedule is Algorithm 1. It adds instances for the load that is not served yet. It takes the largest batches that the
// remaining load fills and the cluster has room for, each where Eq. 10 is highest, until all is served or nothing has
// room. A remainder below every batch's lower bound is left to batches of one, which have none. Ties go to the higher
// upper bound, then to the first part and server.
//
// If the function has a limit on instances, those of has count, and each new one must serve at least its part of the
// remainder.
func (o algorithm1) Schedule(x *packing.State, f *packing.Function, has []packing.Placed, load float64) (
	out []packing.Placed,
) {
	if len(f.Configurations) == 0 {
		return nil
	}
	fit := placementsOf(x.Cluster, f, o.first)
	for load > packing.Tolerance*f.Load && !f.Full(len(has)+len(out)) {
		best, most := -1, 0.0
		each := f.MinRate(len(has)+len(out), load, func(k int) bool { return fit.where[fit.shape[k]] != nil })
		for k := range f.Configurations {
			cfg := &f.Configurations[k]
			if best >= 0 && cfg.Batch < f.Configurations[best].Batch {
				break // a larger batch has room
			}
			g := fit.where[fit.shape[k]]
			if g == nil || cfg.Up < each || !f.Fills(cfg, load) {
				continue
			}
			e := cfg.Up / cfg.Resources / f.MaxEfficiency
			if o.undivided {
				e = cfg.Up
			}
			if !o.first {
				e /= max(1-cfg.Resources/g.Left, minFragment)
			}
			if best < 0 || e > most || e == most && cfg.Up > f.Configurations[best].Up {
				best, most = k, e
			}
		}
		if best < 0 {
			break
		}
		cfg := &f.Configurations[best]
		out = append(out, fit.place(best, cfg))
		load -= cfg.Up
	}
	return out
}
