package kairos

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// choosePool takes one of the pools of an app, which are ranked by bound. Eq. 15 is an estimate, for which the
// similarity rule of §5.2 compensates. The linear program needs no such rule: in our measurements its highest bound was
// the better choice wherever the two differ (docs/papers.md).
func (x *state) choosePool(ctx context.Context, n *appRent, ranked []Ranked) (Ranked, error) {
	switch {
	case x.o.Explores:
		return n.chooseByExperience(ranked, x.r.Experience), nil
	case x.o.Queueing:
		return x.chooseByQueueing(ctx, n, ranked)
	case x.o.Fluid:
		return ranked[0], nil
	}
	return ranked[BestSuperset(ranked, ChooseBySimilarity(n.market, ranked))], nil
}

// chooseByQueueing takes the pool with the highest estimate or, where pools can be tried, the best of the first few.
func (x *state) chooseByQueueing(ctx context.Context, n *appRent, ranked []Ranked) (Ranked, error) {
	late := x.lateShare(n.app)
	q, err := NewQueueing(n.market, late)
	if err != nil {
		return Ranked{}, err
	}
	tries := cmp.Or(x.o.Trials, DefaultTrials)
	if x.trial == nil || late == 0 {
		tries = 1 // no rate is carried without a single late query
	}
	first := q.Highest(ranked, max(tries, 1))
	if len(first) == 1 {
		return first[0].Ranked, nil
	}
	best, err := x.trial(ctx, Contest{
		Spec: x.r.Spec, Market: n.market, Variant: n.variant, Late: late, Pools: first, Known: x.r.Known,
	})
	if err != nil {
		return Ranked{}, fmt.Errorf("app %q: pools are tried: %w", x.r.Spec.Apps[n.app].Name, err)
	}
	return first[best].Ranked, nil
}

// rent chooses the pools of the apps that have a market.
func (x *state) rent(ctx context.Context) error {
	var open []*contender
	for a := range x.apps {
		n := &x.apps[a]
		if n.market == nil {
			continue
		}
		if err := x.prepare(n); err != nil {
			return err
		}
		if n.market != nil {
			open = append(open, &contender{appRent: n})
		}
	}
	if len(open) == 1 && x.o.Budget == 0 {
		m := open[0].market
		for t := range m.Types {
			if m.Useful(t) {
				open[0].pool[t] = m.Types[t].Max
			}
		}
		return nil
	}
	for _, l := range open {
		if err := x.rankPools(l); err != nil {
			return err
		}
	}
	open, err := x.withPools(open)
	if err != nil {
		return err
	}
	switch len(open) {
	case 0:
		return nil
	case 1:
		l := open[0]
		chosen, err := x.choosePool(ctx, l.appRent, l.byBound)
		copy(l.pool, chosen.Pool)
		return err
	}
	return x.splitBudget(ctx, open)
}

// prepare reduces an app's market to the machines that are left and the queries that these can serve, and prepares its
// bound.
func (x *state) prepare(n *appRent) (err error) {
	m := *n.market
	m.Types = nil
	for _, t := range n.market.Types {
		if t.Max = x.workersLeft[t.Device]; t.Max > 0 {
			m.Types = append(m.Types, t)
		}
	}
	n.market, n.excluded = m.Servable(x.o.Fluid, x.lateShare(n.app))
	if n.market == nil {
		n.excluded = 0
		return nil // the machines rented to learn have used up the last one
	}
	n.pool = make(Pool, len(n.market.Types))
	if !x.o.Fluid {
		n.bound = NewUpper(n.market)
		return nil
	}
	n.bound, err = NewFluid(n.market, x.lateShare(n.app))
	return err
}

// contender is an app and the pools that it could get.
type contender struct {
	*appRent
	byBound  []Ranked // with bounds above 0
	byCost   []Ranked
	assigned *Ranked // the cheapest pool that it gets by now
}

// rankPools ranks the pools that an app could get if it were alone.
func (x *state) rankPools(l *contender) error {
	var pools []Pool
	if x.o.Budget == 0 || x.budgetLeft > 0 {
		var err error
		if pools, err = l.market.Pools(max(x.budgetLeft, 0)); err != nil {
			return fmt.Errorf("app %q: %w", x.r.Spec.Apps[l.app].Name, err)
		}
	}
	l.byBound = slices.DeleteFunc(Rank(l.market, l.bound, pools), func(r Ranked) bool { return r.Bound <= 0 })
	l.byCost = slices.Clone(l.byBound)
	slices.SortStableFunc(l.byCost, func(a, b Ranked) int {
		if a.Cost == 0 && b.Cost == 0 {
			return cmp.Compare(a.Pool.Machines(), b.Pool.Machines()) // without prices, machines are counted
		}
		return cmp.Compare(rounded(a.Cost), rounded(b.Cost))
	})
	return nil
}

// withPools returns the apps that get a machine at all: all of them, in their order, if there are machines and money
// for all. Otherwise apps with more demand come first, and the others share machines. It fails when no app gets one.
func (x *state) withPools(open []*contender) ([]*contender, error) {
	if len(open) == 0 || x.cheapestReaching(open, 0) {
		return open, nil
	}
	slices.SortStableFunc(open, func(a, b *contender) int { return cmp.Compare(b.rate, a.rate) })
	var out []*contender
	left, money := slices.Clone(x.workersLeft), x.budgetLeft
	for _, l := range open {
		if at := x.cheapest(l, 0, left, money); at >= 0 {
			l.take(left, l.byCost[at].Pool)
			money -= l.byCost[at].Cost
			out = append(out, l)
			continue
		}
		l.sharing = true
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("app %q: no pool for %v $/h serves its queries in time: raise the budget",
			x.r.Spec.Apps[open[0].app].Name, x.o.Budget)
	}
	return out, nil
}

// cheapest returns the index in byCost of the cheapest pool of an app whose bound is at least a multiple of its demand,
// from the workers and the money that are left; -1 for none.
func (x *state) cheapest(l *contender, multiple float64, left []int, money float64) int {
	return slices.IndexFunc(l.byCost, func(r Ranked) bool {
		return r.Bound >= multiple*l.rate*(1-rounding) &&
			(x.o.Budget == 0 || r.Cost <= money+rounding*x.o.Budget) && l.fits(left, r.Pool)
	})
}

// bisectionSteps is the number of bisection steps for the multiple of the demand that all apps reach.
const bisectionSteps = 50

// splitBudget gives every app a pool, in two steps.
func (x *state) splitBudget(ctx context.Context, open []*contender) error {
	// Step 1: the largest multiple of the demand that all apps reach with the cheapest pools, by bisection.
	low, high := 0.0, math.Inf(1)
	for _, l := range open {
		high = min(high, l.byBound[0].Bound/l.rate)
	}
	if !x.cheapestReaching(open, high) {
		for range bisectionSteps {
			if middle := (low + high) / 2; x.cheapestReaching(open, middle) {
				low = middle
			} else {
				high = middle
			}
		}
		x.cheapestReaching(open, low)
		high = low
	}
	// Step 2: each app chooses among the pools that reach the multiple as a single app would. It may spend its part of
	// the budget, in proportion to its pool of step 1, and use the workers that the others leave.
	spent := 0.0
	left := slices.Clone(x.workersLeft)
	for _, l := range open {
		spent += l.assigned.Cost
		l.take(left, l.assigned.Pool)
	}
	for _, l := range open {
		l.giveBack(left, l.assigned.Pool)
		part := math.Inf(1)
		if x.o.Budget > 0 {
			part = l.assigned.Cost
			if spent > 0 {
				part *= max(x.budgetLeft/spent, 1)
			}
		}
		var may []Ranked
		for _, r := range l.byBound {
			if r.Bound >= high*l.rate*(1-rounding) && r.Cost <= part*(1+rounding) && l.fits(left, r.Pool) {
				may = append(may, r)
			}
		}
		chosen, err := x.choosePool(ctx, l.appRent, may)
		if err != nil {
			return err
		}
		copy(l.pool, chosen.Pool)
		l.take(left, l.pool)
	}
	return nil
}

// cheapestReaching gives each app in turn the cheapest pool whose bound is at least a multiple of its demand, from the
// workers and the money that earlier apps leave. It reports whether all apps get one.
func (x *state) cheapestReaching(open []*contender, multiple float64) bool {
	left, money := slices.Clone(x.workersLeft), x.budgetLeft
	for _, l := range open {
		at := x.cheapest(l, multiple, left, money)
		if at < 0 {
			return false
		}
		l.assigned = &l.byCost[at]
		l.take(left, l.assigned.Pool)
		money -= l.assigned.Cost
	}
	return true
}

// fits reports whether the workers that are left, by DeviceTypeID, are enough for a pool.
func (l *contender) fits(left []int, p Pool) bool {
	for t, n := range p {
		if n > left[l.market.Types[t].Device] {
			return false
		}
	}
	return true
}

// take removes the workers of a pool from those that are left, which are by DeviceTypeID.
func (l *contender) take(left []int, p Pool) {
	for t, n := range p {
		left[l.market.Types[t].Device] -= n
	}
}

// giveBack is the inverse of take.
func (l *contender) giveBack(left []int, p Pool) {
	for t, n := range p {
		left[l.market.Types[t].Device] += n
	}
}
