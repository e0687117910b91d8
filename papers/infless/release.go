package infless

import (
	"cmp"
	"slices"
)

// bandEdge is the load below which instances are released. §3.2 prints alpha of the lower bound and 1 - alpha of the
// upper. Eq. 7, and the authors' release, bound a function's instances by alpha of the upper and 1 - alpha of the
// lower. With alpha = 0.8 the printed form would keep instances down to about a fifth of what they carry, where §3.2
// wants loads near to that. So Eq. 7 is meant.
func bandEdge(low, up, alpha float64) float64 { return alpha*up + (1-alpha)*low }

// release removes instances of a function whose load is below its band (§3.2, case iii), those with the lowest rate per
// resource first. The paper does not say which ones; the authors' release tries subsets in binary order. The remaining
// instances always carry the load. If that is impossible within the band, the load stays below it.
func (x *state) release(f *function) {
	up, low := f.up(), f.low()
	if f.load >= bandEdge(low, up, x.o.Alpha) {
		return
	}
	order := make([]int, len(f.running))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		i, j := &f.running[a], &f.running[b]
		return cmp.Or(cmp.Compare(i.Up/i.Resources, j.Up/j.Resources), cmp.Compare(b, a))
	})
	gone := make([]bool, len(f.running))
	spare := len(f.running) - f.bounds.min
	for _, k := range order {
		i := &f.running[k]
		if spare <= 0 {
			break
		}
		if up-i.Up < f.load*(1-tolerance) {
			continue
		}
		gone[k] = true
		spare--
		up, low = up-i.Up, low-i.Low
		x.cluster.release(i.server, i.Configuration, i.accelerator)
		if f.load >= bandEdge(low, up, x.o.Alpha) {
			break
		}
	}
	kept := f.running[:0]
	for k, i := range f.running {
		if !gone[k] {
			kept = append(kept, i)
		}
	}
	f.running = kept
}

// consolidate replaces all instances of a function by those that Algorithm 1 would give it now, if that saves enough
// (§3.2 shows it in Figure 6b and gives no rule): a load that grew in small steps has many small instances. The new
// ones are placed beside the old, so that no capacity is missing while they start. With inPlace they take the room of
// the old ones.
func (x *state) consolidate(f *function, inPlace bool) {
	has := f.resources()
	if len(f.running) == 0 || f.load <= 0 || has*(1-x.o.Merge) <= f.load/f.maxEfficiency {
		return // no instances could save as much
	}
	old := f.running
	if inPlace {
		x.releaseAll(old)
	}
	fresh := x.filled(f, x.scheduleAnew(f))
	carried := 0.0
	for _, i := range fresh {
		carried += i.Up
	}
	if carried >= f.load*(1-tolerance) && len(fresh) >= f.bounds.min && resources(fresh) < has*(1-x.o.Merge) {
		if !inPlace {
			x.releaseAll(old)
		}
		f.running = reused(fresh, old)
		return
	}
	x.releaseAll(fresh)
	if inPlace {
		for _, i := range old {
			x.cluster.allocate(i.server, i.Configuration, i.accelerator)
		}
	}
}

// scheduleAnew places all instances that a function needs, beside those that run.
func (x *state) scheduleAnew(f *function) (out []placed) {
	if !x.o.Balanced && !x.o.Dense {
		return x.schedule(f, nil, f.load)
	}
	running := f.running
	f.running = nil
	x.packBalanced([]*function{f}, x.rule())
	out, f.running = f.running, running
	return out
}

func (x *state) releaseAll(list []placed) {
	for _, i := range list {
		x.cluster.release(i.server, i.Configuration, i.accelerator)
	}
}

// reused gives new instances the places of old ones with the same part on the same server, so that these go on with
// another batch size.
func reused(fresh, old []placed) []placed {
	type spot struct {
		server      int32
		accelerator int
		device      int32
	}
	places := make(map[spot][]int32)
	for _, i := range old {
		s := spot{i.server, i.accelerator, int32(i.Device)}
		places[s] = append(places[s], i.place)
	}
	for k := range fresh {
		i := &fresh[k]
		s := spot{i.server, i.accelerator, int32(i.Device)}
		if left := places[s]; len(left) > 0 {
			i.place, places[s] = left[0], left[1:]
		}
	}
	return fresh
}
