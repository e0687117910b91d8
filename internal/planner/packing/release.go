package packing

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
func (x *State) release(f *Function) {
	up, low := f.up(), f.low()
	if f.Load >= bandEdge(low, up, x.o.Alpha) {
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
		if up-i.Up < f.Load*(1-Tolerance) {
			continue
		}
		gone[k] = true
		spare--
		up, low = up-i.Up, low-i.Low
		x.Cluster.release(i.Server, i.Configuration, i.Accelerator)
		if f.Load >= bandEdge(low, up, x.o.Alpha) {
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

// consolidate replaces all instances of a function by those that the rule would give it now, if that saves enough
// (§3.2 shows it in Figure 6b and gives no rule): a load that grew in small steps has many small instances. The new
// ones are placed beside the old, so that no capacity is missing while they start. With inPlace they take the room of
// the old ones.
func (x *State) consolidate(f *Function, inPlace bool) {
	has := f.resources()
	if len(f.running) == 0 || f.Load <= 0 || has*(1-x.o.Merge) <= f.Load/f.MaxEfficiency {
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
	if carried >= f.Load*(1-Tolerance) && len(fresh) >= f.bounds.min && resources(fresh) < has*(1-x.o.Merge) {
		if !inPlace {
			x.releaseAll(old)
		}
		f.running = reused(fresh, old)
		return
	}
	x.releaseAll(fresh)
	if inPlace {
		for _, i := range old {
			x.Cluster.Allocate(i.Server, i.Configuration, i.Accelerator)
		}
	}
}

// scheduleAnew places all instances that a function needs, beside those that run.
func (x *State) scheduleAnew(f *Function) (out []Placed) {
	if x.o.Rule != nil {
		return x.o.Rule.Schedule(x, f, nil, f.Load)
	}
	running := f.running
	f.running = nil
	x.packBalanced([]*Function{f}, x.rule())
	out, f.running = f.running, running
	return out
}

func (x *State) releaseAll(list []Placed) {
	for _, i := range list {
		x.Cluster.release(i.Server, i.Configuration, i.Accelerator)
	}
}

// reused gives new instances the places of old ones with the same part on the same server, so that these go on with
// another batch size.
func reused(fresh, old []Placed) []Placed {
	type spot struct {
		server      int32
		accelerator int
		device      int32
	}
	places := make(map[spot][]int32)
	for _, i := range old {
		s := spot{i.Server, i.Accelerator, int32(i.Device)}
		places[s] = append(places[s], i.place)
	}
	for k := range fresh {
		i := &fresh[k]
		s := spot{i.Server, i.Accelerator, int32(i.Device)}
		if left := places[s]; len(left) > 0 {
			i.place, places[s] = left[0], left[1:]
		}
	}
	return fresh
}
