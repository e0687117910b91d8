package packing

import (
	"cmp"
	"slices"
)

// bounds are the least and the most instances of a function; max 0 sets no bound. INFless has none. A developer may
// want some instances to stay, or a limit on costs.
type bounds struct{ min, max int }

// Full reports whether a function with n instances has as many as it may have.
func (f *Function) Full(n int) bool { return f.bounds.max > 0 && n >= f.bounds.max }

// Fills reports whether a load in queries/s fills the batches of a configuration in time.
func (f *Function) Fills(cfg *Configuration, load float64) bool {
	return cfg.Batch == 1 || f.late || load > cfg.Low
}

// MinRate returns the least upper bound, in queries/s, that the next instance must have so that the instances still to
// come can carry the load. If none with room has it, MinRate returns the highest bound with room. Without a limit on
// instances it is 0.
func (f *Function) MinRate(has int, load float64, room func(k int) bool) (least float64) {
	if f.bounds.max == 0 {
		return 0
	}
	least = load / float64(max(f.bounds.max-has, 1)) * (1 - Tolerance)
	highest := 0.0
	for k := range f.Configurations {
		if cfg := &f.Configurations[k]; cfg.Up > highest && f.Fills(cfg, load) && room(k) {
			highest = cfg.Up
		}
	}
	return min(least, highest)
}

// roomFor returns which of a function's configurations have room somewhere.
func (x *State) roomFor(f *Function) func(k int) bool {
	return func(k int) bool {
		ok, _ := x.hasRoom(&f.Configurations[k], false)
		return ok
	}
}

// trim removes the instances beyond a function's limit, those that serve least first.
func (x *State) trim(f *Function) {
	if f.bounds.max == 0 || len(f.running) <= f.bounds.max {
		return
	}
	order := slices.Clone(f.running)
	slices.SortStableFunc(order, func(a, b Placed) int { return cmp.Compare(b.Up, a.Up) })
	x.releaseAll(order[f.bounds.max:])
	f.running = order[:f.bounds.max]
}

// fill brings every function to its least number of instances.
func (x *State) fill() {
	for k := range x.Functions {
		f := &x.Functions[k]
		f.running = x.filled(f, f.running)
	}
}

// filled adds instances of a function to has until it has its least number. It adds the smallest ones with which the
// instances still to come can carry the load.
func (x *State) filled(f *Function, has []Placed) []Placed {
	for len(has) < f.bounds.min {
		left := f.Load
		for _, i := range has {
			left -= i.Up
		}
		room := x.roomFor(f)
		each := f.MinRate(len(has), max(left, 0), room)
		var best *Configuration
		for k := range f.Configurations {
			cfg := &f.Configurations[k]
			if cfg.Up >= each && f.Fills(cfg, left) && room(k) && (best == nil || cfg.Resources < best.Resources ||
				cfg.Resources == best.Resources && cfg.Low < best.Low) {
				best = cfg
			}
		}
		if best == nil {
			break
		}
		at := x.fullestServer(best)
		on, _ := x.Cluster.Allocate(at, best, -1)
		has = append(has, Placed{Configuration: best, Server: at, Accelerator: on})
	}
	return has
}

// fullestServer returns the fullest server with room, or -1.
func (x *State) fullestServer(cfg *Configuration) int32 {
	for _, g := range x.Cluster.Groups {
		if g.Fits(cfg) {
			return g.Servers[len(g.Servers)-1]
		}
	}
	return -1
}

// enlarge replaces the instances of a function with a limit by others that carry more, in the room of the old ones: by
// those that the rule gives it anew or, if these do not carry the load, by the largest.
func (x *State) enlarge(f *Function) {
	old, most := f.running, f.up()
	x.releaseAll(old)
	best := old
	for _, try := range []func(*Function) []Placed{x.scheduleAnew, x.packLargest} {
		fresh := x.filled(f, try(f))
		x.releaseAll(fresh)
		up := 0.0
		for _, i := range fresh {
			up += i.Up
		}
		if up > most*(1+Tolerance) && len(fresh) >= min(f.bounds.min, len(old)) {
			best, most = fresh, up
		}
		if up >= f.Load*(1-Tolerance) {
			break
		}
	}
	for _, i := range best {
		x.Cluster.Allocate(i.Server, i.Configuration, i.Accelerator)
	}
	if f.running = best; most > 0 && len(old) > 0 && &best[0] != &old[0] {
		f.running = reused(best, old)
	}
}

// packLargest places the instances of a function that carry most, one after the other.
func (x *State) packLargest(f *Function) (out []Placed) {
	for left := f.Load; left > Tolerance*f.Load && !f.Full(len(out)); {
		best := -1
		room := x.roomFor(f)
		for k := range f.Configurations {
			if cfg := &f.Configurations[k]; f.Fills(cfg, left) && room(k) &&
				(best < 0 || cfg.Up > f.Configurations[best].Up) {
				best = k
			}
		}
		if best < 0 {
			break
		}
		cfg := &f.Configurations[best]
		at := x.fullestServer(cfg)
		on, _ := x.Cluster.Allocate(at, cfg, -1)
		out = append(out, Placed{Configuration: cfg, Server: at, Accelerator: on})
		left -= cfg.Up
	}
	return out
}
