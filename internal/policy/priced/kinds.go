package priced

import (
	"math/bits"
	"slices"
)

// findKinds numbers the groups of a stage by what their machines are to it. In a large fleet few machines hold the
// same, and there are many groups. For one stage most of them are alike: of one type, with the same of its variants.
// What a batch takes and brings there is the same, and only the price of the time differs.
func (x *stage) findKinds(groups []group) {
	x.kinds, x.set = make([]int32, len(groups)), make([]uint64, (len(groups)+63)/64)
	var first []int32 // by kind
	for _, g := range x.groups {
		kind := slices.IndexFunc(first, func(f int32) bool { return groups[g].like(&groups[f], x) })
		if kind < 0 {
			kind, first = len(first), append(first, g)
		}
		x.kinds[g] = int32(kind)
		x.set[g/64] |= 1 << (g % 64)
	}
	x.alike = len(first)
}

// like reports whether machines of two groups are the same to a stage.
func (y *group) like(z *group, x *stage) bool {
	return y.device == z.device && y.slots == z.slots &&
		slices.EqualFunc(y.holding(x), z.holding(x), func(a, b option) bool {
			return a.variant == b.variant && a.limit == b.limit && a.pinned == b.pinned &&
				(a.together == nil) == (b.together == nil)
		})
}

// promising lists the groups with free machines on which the best batch of a stage may run, in their order. Of those of
// a kind that is the one whose time is cheapest, the first of several. A group where a batch blocks others counts on
// its own, and where tasks were given their slots all groups do.
func (r *Rule) promising(x *stage) []int32 {
	list, best := r.promise[:0], sized(r.cheapest, x.alike)
	r.cheapest = best
	for k := range best {
		best[k] = -1
	}
	for w, word := range r.machines.freeSet {
		for word &= x.set[w]; word != 0; word &= word - 1 {
			g := int32(64*w + bits.TrailingZeros64(word))
			list = append(list, g)
			y, kind := &r.machines.groups[g], x.kinds[g]
			if len(y.blocked) > 0 || x.candidates[g].passed == x.collection {
				continue
			}
			if b := best[kind]; b < 0 || y.priceNow() < r.machines.groups[b].priceNow() {
				best[kind] = g
			}
		}
	}
	r.promise = list
	if x.placed {
		return list
	}
	return slices.DeleteFunc(list, func(g int32) bool {
		return best[x.kinds[g]] != g && len(r.machines.groups[g].blocked) == 0
	})
}

// priceNow is the price of a second of a slot while so many are free.
func (y *group) priceNow() float64 {
	price := y.price
	for n := 1; n < y.free && price > y.least; n++ {
		price = max(price*idleness, y.least)
	}
	return price
}
