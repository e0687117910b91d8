package route

import (
	"math"

	"github.com/sluice-serving/sluice/serving/fleet"
)

// What rules with a central queue ask of instances.

// Largest returns the items of the largest query that every ready instance of the stage serves on its active variant,
// at least 1.
func Largest(v *View) int {
	n := math.MaxInt32
	for _, i := range v.Instances() {
		if i.Active() >= 0 {
			n = min(n, i.Limit())
		}
	}
	return max(n, 1)
}

// HasSpareSlot reports whether i has a free slot that no queued query waits for.
func HasSpareSlot(i *fleet.Instance) bool { return i.FreeSlots() > i.Queue().Len() }

// Free reports whether instance i has a free slot, and room for t in the batch that it is filling.
func Free(f *fleet.View, i *fleet.Instance, t *fleet.Task) bool {
	if i.FreeSlots() == 0 {
		return false
	}
	limit := i.Limit()
	if t.Constrained() || t.Items() > limit { // a variant that is not active may take it
		at := f.Choose(i, t)
		if at < 0 {
			return false
		}
		limit = i.Variant(at).Limit
	}
	return i.Queue().Items()+t.Items() <= limit
}

// MayStart reports whether an instance has a free slot and nothing waits that would use it first, on the instance or on
// one with which it takes turns.
func MayStart(f *fleet.View, i *fleet.Instance) bool {
	if i.FreeSlots() <= 0 || i.Queue().Len() > 0 {
		return false
	}
	if i.TimeShared() {
		for _, other := range f.Sharing(i) {
			if other.TimeShared() && other.Queue().Len() > 0 {
				return false
			}
		}
	}
	return true
}
