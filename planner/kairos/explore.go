package kairos

import (
	"cmp"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// explore rents, for each app, one machine of every type on which its speed is unknown, the cheapest first: what never
// runs is never learned. If something is known, it spends at most half of the budget, so that queries are served
// meanwhile. If nothing is known of any app, it goes on as long as there are machines and money.
func (x *state) explore() {
	known := slices.ContainsFunc(x.apps, func(n appRent) bool { return n.market != nil })
	types := make([]serving.DeviceTypeID, len(x.left))
	for d := range types {
		types[d] = serving.DeviceTypeID(d)
	}
	slices.SortStableFunc(types, func(a, b serving.DeviceTypeID) int { return cmp.Compare(x.r.Price(a), x.r.Price(b)) })
	kept := 0.0
	if known {
		kept = x.budgetLeft / 2
	}
	for more := true; more; {
		more = false
		for a := range x.apps {
			for _, d := range types {
				n, price := &x.apps[a], x.r.Price(d)
				if !n.unknown[d] || x.left[d] == 0 || x.o.Budget > 0 && price > (x.budgetLeft-kept)*(1+rounding) {
					continue
				}
				n.explored[d]++
				x.left[d]--
				x.budgetLeft -= price
				more = !known
			}
		}
	}
}
