package kairos

import (
	"cmp"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// explore rents, for each app, one machine of every type on which its speed is unknown, the cheapest first. A type that
// runs nothing is never learned about. If some speed is known, it spends at most half of the budget, so that queries
// are served meanwhile. If nothing is known of any app, it continues until machines or money run out.
func (x *state) explore() {
	known := slices.ContainsFunc(x.apps, func(n appRent) bool { return n.market != nil })
	types := make([]serving.DeviceTypeID, len(x.workersLeft))
	for d := range types {
		types[d] = serving.DeviceTypeID(d)
	}
	slices.SortStableFunc(types, func(a, b serving.DeviceTypeID) int { return cmp.Compare(x.r.Price(a), x.r.Price(b)) })
	reserved := 0.0
	if known {
		reserved = x.budgetLeft / 2
	}
	for more := true; more; {
		more = false
		for a := range x.apps {
			for _, d := range types {
				n, price := &x.apps[a], x.r.Price(d)
				tooExpensive := x.o.Budget > 0 && price > (x.budgetLeft-reserved)*(1+rounding)
				if !n.unknown[d] || x.workersLeft[d] == 0 || tooExpensive {
					continue
				}
				n.explored[d]++
				x.workersLeft[d]--
				x.budgetLeft -= price
				more = !known
			}
		}
	}
}
