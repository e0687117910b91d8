package scrooge

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// variant returns the variant that a mode runs.
func variant(m *Mode) serving.VariantID { return serving.VariantID(m.Tag) }

// assignments finds workers for a candidate's machines; nil when there are too few.
func (c *candidate) assignments() []capacity.Assignment {
	if !c.fits() {
		return nil
	}
	x := c.request
	bundles := make([]capacity.Bundle, len(c.packing.bins))
	for k, b := range c.packing.bins {
		bundles[k].Group = b.device
		for n := range b.pieces {
			p := &b.pieces[n]
			bundles[k].Instances = append(bundles[k].Instances, capacity.Instance{
				Stage: x.stage(p).id, Variant: variant(&p.mode), Slots: p.mode.Slots,
			})
		}
	}
	out, _ := capacity.AssignWorkers(x.running, x.workers, bundles)
	return out
}

// continuing counts the instances that go on.
func (c *candidate) continuing() (n int) {
	for _, h := range c.assignments() {
		for _, k := range h.Continues {
			if k {
				n++
			}
		}
	}
	return n
}

// stage returns the stage of a piece.
func (x *request) stage(p *piece) *stage { return &x.pipelines[p.graph].stages[p.stage] }

// plan makes the plan of a candidate for a part of the demand. wanted is the candidate for all of it, if that does not
// fit; else nil. bound is the result of candidateSearch.bound.
func (x *request) plan(r plan.Request, c, wanted *candidate, part, bound float64) *plan.Plan {
	if !x.o.AsWritten {
		c.useSpareCapacity()
	}
	out := r.NewPlan("scrooge")
	out.Forecast.CostPerHour, out.Budgets = x.rent(r, c), make([]time.Duration, len(x.spec.Stages))
	for g := range c.solutions {
		for i, within := range c.budgets(g) {
			out.Budgets[x.pipelines[g].stages[i].id] = within
		}
	}
	// factor by which an app's load may grow before one of its machines is full
	growth := make([]float64, len(x.spec.Apps))
	for a := range growth {
		growth[a] = math.Inf(1)
	}
	right := make([]float64, len(x.spec.Stages)) // mean accuracy, by StageID
	workers := c.assignments()
	for k := range c.packing.bins {
		b, h := &c.packing.bins[k], &workers[k]
		for n := range b.pieces {
			p := &b.pieces[n]
			st := x.stage(p)
			i := plan.Instance{
				Worker: h.Worker, Place: h.Places[n], Stage: st.id, Variants: []plan.Variant{
					{Variant: variant(&p.mode), Limit: p.mode.Batch},
				},
				Slots: p.mode.Slots, Built: x.launchSlots(p), Share: p.rate / (st.rate * part),
			}
			if p.mode.Batch > 1 {
				i.BatchTimeout = time.Duration(float64(p.mode.Batch) / p.rate * float64(time.Second))
			}
			if !h.Continues[n] {
				out.Loads++
			}
			a := x.pipelines[p.graph].app
			growth[a] = min(growth[a], 1/max(1-b.room, roomTolerance))
			right[st.id] += i.Share * x.spec.Variants[variant(&p.mode)].Accuracy
			out.Instances = append(out.Instances, i)
		}
	}
	out.Sort()
	x.fillForecast(out, growth, right, part, wanted == nil)
	if wanted != nil {
		out.Shortage = wanted.short()
	}
	x.fillBound(out, c, bound)
	return out
}

// rent returns what the machines of a candidate cost by the request's prices, in $/h.
func (x *request) rent(r plan.Request, c *candidate) (out float64) {
	for d, n := range c.packing.used {
		out += float64(n) * r.Price(serving.DeviceTypeID(d))
	}
	return out
}

// fillForecast fills in the demand, the capacity, what is left out where not all of it fits, and the forecast. growth
// is by AppID the factor by which the load may grow. right is by StageID the mean accuracy.
func (x *request) fillForecast(out *plan.Plan, growth, right []float64, part float64, fits bool) {
	apps := make([]capacity.Outlook, len(x.rates))
	for a, app := range x.spec.Apps {
		y := &apps[a]
		*y = capacity.Outlook{
			Demand: x.rates[a], Capacity: x.rates[a] * part * growth[a], Served: x.rates[a] * part, Accuracy: 1,
		}
		for _, s := range app.Stages {
			y.Accuracy *= right[s]
		}
		if !fits {
			y.Missing = x.rates[a] * (1 - part)
		}
	}
	capacity.Foresee(out, apps)
}

// fillBound fills in how good the plan is proven to be, in $/h of rent. No plan uses less than the sum of the
// pipelines' bounds. Machines are rented as a whole, so the least sum of whole prices that reaches this is a bound.
func (x *request) fillBound(out *plan.Plan, c *candidate, bound float64) {
	if x.unpriced || math.IsNaN(bound) {
		return
	}
	var prices []float64
	for d, price := range x.prices {
		if x.useful(d) {
			prices = append(prices, price)
		}
	}
	out.Bound, out.Proven, out.BoundsCost = min(leastWholePrices(bound*(1-roomTolerance), prices), c.cost), true, true
	out.Gap = (c.cost - out.Bound) / max(out.Bound, roomTolerance)
}

// useful reports whether some module runs on a type.
func (x *request) useful(device int) bool {
	for g := range x.pipelines {
		for i := range x.pipelines[g].stages {
			if slices.ContainsFunc(x.pipelines[g].stages[i].modes, func(m Mode) bool { return m.Type == device }) {
				return true
			}
		}
	}
	return false
}

// leastWholePrices returns the least sum of prices, each taken any number of times, that is at least need. If the
// search is too long, it returns need itself.
func leastWholePrices(need float64, prices []float64) float64 {
	prices = slices.Clone(prices)
	slices.Sort(prices)
	slices.Reverse(prices)
	best, steps := math.Inf(1), 100_000
	var add func(k int, sum float64)
	add = func(k int, sum float64) {
		if sum >= need {
			best = min(best, sum)
			return
		}
		if steps--; k == len(prices) || steps < 0 {
			return
		}
		if k == len(prices)-1 {
			best = min(best, sum+math.Ceil((need-sum)/prices[k])*prices[k])
			return
		}
		for ; sum < best; sum += prices[k] {
			add(k+1, sum)
			if sum >= need {
				return
			}
		}
	}
	add(0, 0)
	if steps < 0 {
		return need
	}
	return best
}

// launchSlots returns how many slots an instance is launched with: the most that any mode of its variant on its type
// has, so that another concurrency takes no load.
func (x *request) launchSlots(p *piece) (most int) {
	for _, m := range x.stage(p).modes {
		if m.Type == p.mode.Type && m.Tag == p.mode.Tag {
			most = max(most, m.Slots)
		}
	}
	return max(most, p.mode.Slots)
}
