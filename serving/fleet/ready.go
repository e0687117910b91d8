package fleet

import (
	"cmp"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// kind is what the latency of an instance depends on for tasks without requirements.
type kind struct {
	variant serving.VariantID
	device  serving.DeviceTypeID
}

// countedKind is a kind with the number of ready instances of a stage that are of it, above 0.
type countedKind struct {
	kind
	instances int
}

// updateReady puts an instance among the ready ones of its stage, in the order of their IDs, or takes it out of them,
// by its state and rest. The cost does not grow with the instances of other stages: at a start of thousands of machines
// each of their instances comes here.
func (f *Fleet) updateReady(i *Instance) {
	f.changes++
	list := &f.ready[i.p.Stage]
	at, found := slices.BinarySearchFunc(*list, i.id, func(o *Instance, id serving.InstanceID) int {
		return cmp.Compare(o.id, id)
	})
	switch ready := i.serves(); {
	case ready && !found:
		*list = slices.Insert(*list, at, i)
	case !ready && found:
		*list = slices.Delete(*list, at, at+1)
	}
	f.countKind(i)
	f.refreshCentral(i.p.Stage)
}

// countKind counts an instance under its present kind, if it is ready and has a usable variant.
func (f *Fleet) countKind(i *Instance) {
	now, counts := kind{}, i.serves() && i.fastest >= 0
	if counts {
		now = kind{i.p.Variants[i.fastest].Variant, i.p.DeviceType}
	}
	if counts == i.counts && now == i.counted {
		return
	}
	list := &f.kinds[i.p.Stage]
	of := func(k kind) int {
		return slices.IndexFunc(*list, func(c countedKind) bool { return c.kind == k })
	}
	if i.counts {
		at := of(i.counted)
		if (*list)[at].instances--; (*list)[at].instances == 0 {
			*list = slices.Delete(*list, at, at+1)
		}
	}
	if i.counts, i.counted = counts, now; !counts {
		return
	}
	if at := of(now); at >= 0 {
		(*list)[at].instances++
	} else {
		*list = append(*list, countedKind{now, 1})
	}
}

// refreshCentral recomputes what the waiting tasks of a stage derive from its ready instances.
func (f *Fleet) refreshCentral(s serving.StageID) {
	for _, q := range [...]*Queue{&f.central[s], &f.turns[s]} {
		for r := q.head; r != Nil; r = f.tasks[r].next {
			f.tasks[r].dropAt = f.centralDrop(&f.tasks[r])
		}
		q.known = false
	}
	f.epoch++
}
