package infless

// placed is an instance on a server.
type placed struct {
	*Configuration
	server      int32
	accelerator int
	place       int32 // as plan.Instance.Place; 0 for a new one
}

// placements remembers, while one function is scheduled, where an instance of each of its sizes would be placed.
type placements struct {
	*cluster
	// take the first server with room
	first  bool
	shapes []*Configuration // one configuration of each size
	shape  []int            // by configuration, index into shapes
	where  []*group         // by shape: the fullest group with room; nil for none
	from   []int32          // by shape, with first: no server before it has room
}

func (c *cluster) placementsOf(f *function, first bool) *placements {
	x := &placements{cluster: c, first: first}
	seen := make(map[[2]int64]int)
	for k := range f.configurations {
		cfg := &f.configurations[k]
		size := [2]int64{int64(cfg.Device), cfg.Memory}
		at, ok := seen[size]
		if !ok {
			at = len(x.shapes)
			seen[size] = at
			x.shapes = append(x.shapes, cfg)
		}
		x.shape = append(x.shape, at)
	}
	x.where, x.from = make([]*group, len(x.shapes)), make([]int32, len(x.shapes))
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
		for ; int(x.from[s]) < len(x.servers); x.from[s]++ {
			if g := x.servers[x.from[s]].group; g.fits(cfg) {
				x.where[s] = g
				return
			}
		}
		return
	}
	for _, g := range x.groups {
		if g.fits(cfg) {
			x.where[s] = g
			return
		}
	}
}

// place places an instance and updates where others would be placed. Only one server has changed, and it has less room
// than before.
func (x *placements) place(k int, cfg *Configuration) placed {
	at := x.from[x.shape[k]]
	if !x.first {
		g := x.where[x.shape[k]]
		at = g.servers[len(g.servers)-1]
	}
	before := x.servers[at].group
	on, _ := x.allocate(at, cfg, -1)
	after := x.servers[at].group
	for s, g := range x.where {
		switch {
		case g == nil:
		case x.first:
			if x.from[s] == at {
				x.refresh(s)
			}
		case after.fits(x.shapes[s]) && compare(after, g) < 0:
			x.where[s] = after
		case g == before && len(before.servers) == 0:
			x.refresh(s)
		}
	}
	return placed{Configuration: cfg, server: at, accelerator: on}
}

// tolerance is the relative difference below which two rates are equal.
const tolerance = 1e-9

// minFragment is the least that Eq. 10 divides by. An instance that takes all that is left of a server would make it 0;
// the authors' release adds a thousandth. Servers that are filled up still come first, and among them the instance with
// the highest rate per resource.
const minFragment = 1e-3

// schedule is Algorithm 1. It adds instances for the load that is not served yet. It takes the largest batches that the
// remaining load fills and the cluster has room for, each where Eq. 10 is highest, until all is served or nothing has
// room. A remainder below every batch's lower bound is left to batches of one, which have none. Ties go to the higher
// upper bound, then to the first part and server.
//
// If the function has a limit on instances, those of has count, and each new one must serve at least its part of the
// remainder.
func (x *state) schedule(f *function, has []placed, load float64) (out []placed) {
	if len(f.configurations) == 0 {
		return nil
	}
	fit := x.cluster.placementsOf(f, x.o.First)
	for load > tolerance*f.load && !f.bounds.reached(len(has)+len(out)) {
		best, most := -1, 0.0
		each := f.minRate(len(has)+len(out), load, func(k int) bool { return fit.where[fit.shape[k]] != nil })
		for k := range f.configurations {
			cfg := &f.configurations[k]
			if best >= 0 && cfg.Batch < f.configurations[best].Batch {
				break // a larger batch has room
			}
			g := fit.where[fit.shape[k]]
			if g == nil || cfg.Up < each || !f.fills(cfg, load) {
				continue
			}
			e := cfg.Up / cfg.Resources / f.maxEfficiency
			if x.o.Undivided {
				e = cfg.Up
			}
			if !x.o.First {
				e /= max(1-cfg.Resources/g.left, minFragment)
			}
			if best < 0 || e > most || e == most && cfg.Up > f.configurations[best].Up {
				best, most = k, e
			}
		}
		if best < 0 {
			break
		}
		cfg := &f.configurations[best]
		out = append(out, fit.place(best, cfg))
		load -= cfg.Up
	}
	return out
}
