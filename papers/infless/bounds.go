package infless

import (
	"cmp"
	"slices"
)

// bounds are the least and the most instances of a function; max 0 sets no bound. The paper has none. A developer may
// want some instances to stay, or a limit on costs.
type bounds struct{ min, max int }

// reached reports whether a function with n instances has as many as it may have.
func (b bounds) reached(n int) bool { return b.max > 0 && n >= b.max }

// fills reports whether a load in queries/s fills the batches of a configuration in time.
func (f *function) fills(cfg *Configuration, load float64) bool {
	return cfg.Batch == 1 || f.uniform || load > cfg.Low
}

// minRate returns the least upper bound, in queries/s, that the next instance must have so that the instances still to
// come can carry the load. If none with room has it, minRate returns the highest bound with room. Without a limit on
// instances it is 0.
func (f *function) minRate(has int, load float64, room func(k int) bool) (least float64) {
	if f.bounds.max == 0 {
		return 0
	}
	least = load / float64(max(f.bounds.max-has, 1)) * (1 - tolerance)
	highest := 0.0
	for k := range f.configurations {
		if cfg := &f.configurations[k]; cfg.Up > highest && f.fills(cfg, load) && room(k) {
			highest = cfg.Up
		}
	}
	return min(least, highest)
}

// roomFor returns which of a function's configurations have room somewhere.
func (x *state) roomFor(f *function) func(k int) bool {
	return func(k int) bool {
		ok, _ := x.hasRoom(&f.configurations[k], false)
		return ok
	}
}

// trim removes the instances beyond a function's limit, those that serve least first.
func (x *state) trim(f *function) {
	if f.bounds.max == 0 || len(f.running) <= f.bounds.max {
		return
	}
	order := slices.Clone(f.running)
	slices.SortStableFunc(order, func(a, b placed) int { return cmp.Compare(b.Up, a.Up) })
	x.releaseAll(order[f.bounds.max:])
	f.running = order[:f.bounds.max]
}

// fill brings every function to its least number of instances.
func (x *state) fill() {
	for k := range x.functions {
		f := &x.functions[k]
		f.running = x.filled(f, f.running)
	}
}

// filled adds instances of a function to has until it has its least number. It adds the smallest ones with which the
// instances still to come can carry the load.
func (x *state) filled(f *function, has []placed) []placed {
	for len(has) < f.bounds.min {
		left := f.load
		for _, i := range has {
			left -= i.Up
		}
		room := x.roomFor(f)
		each := f.minRate(len(has), max(left, 0), room)
		var best *Configuration
		for k := range f.configurations {
			cfg := &f.configurations[k]
			if cfg.Up >= each && f.fills(cfg, left) && room(k) && (best == nil || cfg.Resources < best.Resources ||
				cfg.Resources == best.Resources && cfg.Low < best.Low) {
				best = cfg
			}
		}
		if best == nil {
			break
		}
		at := x.fullestServer(best)
		on, _ := x.cluster.allocate(at, best, -1)
		has = append(has, placed{Configuration: best, server: at, accelerator: on})
	}
	return has
}

// fullestServer returns the fullest server with room, or -1.
func (x *state) fullestServer(cfg *Configuration) int32 {
	for _, g := range x.cluster.groups {
		if g.fits(cfg) {
			return g.servers[len(g.servers)-1]
		}
	}
	return -1
}

// enlarge replaces the instances of a function with a limit by others that carry more, in the room of the old ones: by
// those of Algorithm 1 or, if these do not carry the load, by the largest.
func (x *state) enlarge(f *function) {
	old, most := f.running, f.up()
	x.releaseAll(old)
	best := old
	for _, try := range []func() []placed{func() []placed {
		return x.schedule(f, nil, f.load)
	}, func() []placed { return x.packLargest(f) }} {
		fresh := x.filled(f, try())
		x.releaseAll(fresh)
		up := 0.0
		for _, i := range fresh {
			up += i.Up
		}
		if up > most*(1+tolerance) && len(fresh) >= min(f.bounds.min, len(old)) {
			best, most = fresh, up
		}
		if up >= f.load*(1-tolerance) {
			break
		}
	}
	for _, i := range best {
		x.cluster.allocate(i.server, i.Configuration, i.accelerator)
	}
	if f.running = best; most > 0 && len(old) > 0 && &best[0] != &old[0] {
		f.running = reused(best, old)
	}
}

// packLargest places the instances of a function that carry most, one after the other.
func (x *state) packLargest(f *function) (out []placed) {
	for left := f.load; left > tolerance*f.load && !f.bounds.reached(len(out)); {
		best := -1
		room := x.roomFor(f)
		for k := range f.configurations {
			if cfg := &f.configurations[k]; f.fills(cfg, left) && room(k) &&
				(best < 0 || cfg.Up > f.configurations[best].Up) {
				best = k
			}
		}
		if best < 0 {
			break
		}
		cfg := &f.configurations[best]
		at := x.fullestServer(cfg)
		on, _ := x.cluster.allocate(at, cfg, -1)
		out = append(out, placed{Configuration: cfg, server: at, accelerator: on})
		left -= cfg.Up
	}
	return out
}
