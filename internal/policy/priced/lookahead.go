package priced

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/sluice-serving/sluice/policy/route"
)

// lookahead is which machines are to serve the tasks of a stage that differ in size, busy machines included. Compared
// batch by batch, a fast machine that is free takes small tasks that another one could serve a moment later, and large
// ones that only it can serve in time find it busy.
type lookahead struct {
	free  [][]float64 // by position in stage.groups: s until each slot is free, ascending
	order []int32     // positions in stage.differing, in the order in which slots are given
	ends  []int64
}

const (
	// anywhere is the group of a task that any group may serve.
	anywhere = -1
	// lookaheadWait is what a second of waiting costs beside one of running: it keeps no machine, but raises the risk
	// to be late (router schedule).
	lookaheadWait = 0.5
	// lookaheadTasks bounds the tasks that are given a slot, by the order of the queue.
	lookaheadTasks = 32
)

// looksFurther reports whether slots of a stage are given ahead: where its time is scarce, how long a task takes on
// each machine is known since there is no choice of accuracy, and fewer than half of the machines are of the kind that
// is fastest for large tasks. Where more are, full batches on them bring more than keeping their time does.
func (r *Rule) looksFurther(x *stage) bool {
	if len(x.groups) < 2 || r.apps[x.app].graph.Len() > 1 || x.chooses {
		return false
	}
	scarce, fast := false, 0
	for k, g := range x.groups {
		scarce = scarce || r.machines.groups[g].scarce()
		if largest := len(x.classes) - 1; x.takes(largest, k) < x.takes(largest, fast) {
			fast = k
		}
	}
	return scarce && 2*r.machines.groups[x.groups[fast]].all() < x.slots
}

// lookAhead gives a slot to each task that waits, the tightest first: that where its time and half of its wait cost
// least, of those where it is in time. A task for which no slot is left may go anywhere.
func (r *Rule) lookAhead(v *route.View, x *stage) {
	for j := range x.differing {
		x.differing[j].group = anywhere
	}
	if !r.looksFurther(x) {
		return
	}
	x.placed = true
	h := &r.lookahead
	h.read(r, v, x)
	h.order = h.order[:0]
	for j := range x.differing[:min(len(x.differing), lookaheadTasks)] {
		x.differing[j].tight = x.differing[j].left - r.slowest(x, x.differing[j].items)
		h.order = append(h.order, int32(j))
	}
	slices.SortStableFunc(h.order, func(a, b int32) int {
		return cmp.Compare(x.differing[a].tight, x.differing[b].tight)
	})
	for _, j := range h.order {
		h.place(r, x, &x.differing[j])
	}
}

// read takes up when slots are free: as many of each group as tasks wait.
func (h *lookahead) read(r *Rule, v *route.View, x *stage) {
	n := min(len(x.differing), lookaheadTasks)
	for len(h.free) < len(x.groups) {
		h.free = append(h.free, nil)
	}
	for k, g := range x.groups {
		y := &r.machines.groups[g]
		list := h.free[k][:0]
		for range min(y.free, n) {
			list = append(list, 0)
		}
		if len(list) < n {
			h.ends = y.ends.AppendSmallest(h.ends[:0], n-len(list))
			for _, end := range h.ends {
				list = append(list, max(float64(end-int64(v.Now))/1e9, math.SmallestNonzeroFloat64))
			}
		}
		h.free[k] = list
	}
}

// place gives a task its slot.
func (h *lookahead) place(r *Rule, x *stage, y *task) {
	best, least, took := -1, math.Inf(1), 0.0
	for k, g := range x.groups {
		if len(h.free[k]) == 0 {
			continue
		}
		z := &r.machines.groups[g]
		t, wait := z.fastest(x, y.items), h.free[k][0]
		if wait+t > y.left {
			continue
		}
		if cost := max(z.dual, z.least) * (t + lookaheadWait*wait); cost < least {
			best, least, took = k, cost, t
		}
	}
	if best < 0 {
		return
	}
	list := h.free[best]
	y.group, y.begins = x.groups[best], list[0] == 0
	end := list[0] + took
	at := sort.SearchFloat64s(list, end)
	copy(list, list[1:at])
	list[at-1] = end
}

// mayBegin reports whether a task may begin on a free machine of a group.
func (y *task) mayBegin(g int) bool { return y.group == anywhere || y.group == int32(g) && y.begins }

// mayJoin reports whether a task may join a batch on a machine of a group.
func (y *task) mayJoin(g int) bool { return y.group == anywhere || y.group == int32(g) }

// slowest is the time of a task of so many items on the slowest group that serves it, in s; 0 where none does.
func (r *Rule) slowest(x *stage, items int) (most float64) {
	for _, g := range x.groups {
		if t := r.machines.groups[g].fastest(x, items); !math.IsInf(t, 1) {
			most = max(most, t)
		}
	}
	return most
}
