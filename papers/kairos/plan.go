package kairos

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// plan makes the plan from the pools. A machine that already runs the chosen variant keeps it, so that little has to be
// loaded.
func (x *state) plan() (*plan.Plan, error) {
	spec := x.r.Spec
	apps := len(spec.Apps)
	out := x.r.NewPlan("kairos")
	out.Demand, out.Capacity = make([]float64, apps), make([]float64, apps)
	var offers []capacity.Offer
	var counts []int
	var shares []float64 // of one machine, by offer
	for a := range x.apps {
		n := &x.apps[a]
		out.Mixes = append(out.Mixes, *x.r.Mix(n.app))
		out.Demand[n.app] = n.rate
		if n.sharing {
			continue
		}
		machines, parts, marginal, err := x.shares(n)
		if err != nil {
			return nil, err
		}
		if out.MarginalRates == nil {
			out.MarginalRates = make([][]float64, len(spec.Stages))
		}
		out.MarginalRates[n.stage] = marginal
		for d, k := range machines {
			if k > 0 {
				offers = append(offers, capacity.Offer{
					Group: d, Stage: n.stage, Variant: n.variant,
					Limit: maxItems(spec, n.variant, serving.DeviceTypeID(d)),
				})
				counts, shares = append(counts, k), append(shares, parts[d])
			}
		}
		x.prefer(out, n)
		if n.bound != nil {
			// Sizes that cannot be served are dropped and take no machine time, however large the demand is.
			out.Capacity[n.app] = n.bound.Of(n.pool) / (1 - n.excluded)
		}
	}
	var of []int
	out.Instances, of, out.Loads = capacity.PlaceOffers(&x.r, x.workers, offers, counts)
	for n, k := range of {
		out.Instances[n].Share = shares[k]
	}
	if err := x.share(out); err != nil {
		return nil, err
	}
	out.Forecast.CostPerHour = x.r.CostPerHour(out.Instances)
	x.forecast(out)
	return out, nil
}

// shares returns, by DeviceTypeID, how many machines of each type an app gets, the share of its queries that one
// machine of each type gets, and the queries/s that one more of each type would add. Shares are those of the linear
// program, whichever bound has chosen the pool, since Eq. 15 gives none. Machines rented to learn get as much as if all
// machines were alike. While there are such machines, marginal is nil, because it is not known.
func (x *state) shares(n *appRent) (machines []int, parts, marginal []float64, err error) {
	machines, parts = slices.Clone(n.explored), make([]float64, len(n.explored))
	learning := 0
	for _, k := range n.explored {
		learning += k
	}
	all := learning + n.pool.Machines()
	if all == 0 {
		return nil, nil, nil, fmt.Errorf(
			"app %q: %v $/h and the workers there are leave no machine to find out how fast it runs: raise the budget",
			x.r.Spec.Apps[n.app].Name, x.o.Budget)
	}
	for d := range parts {
		parts[d] = 1 / float64(all)
	}
	if n.pool.Machines() == 0 {
		return machines, parts, nil, nil
	}
	late := 0.0
	if x.o.Fluid {
		late = x.lateShare(n.app)
	}
	f, err := NewFluid(n.market, late)
	if err != nil {
		return nil, nil, nil, err
	}
	best := f.Solve(n.pool)
	if learning == 0 && best.MarginalRates != nil {
		marginal = make([]float64, len(parts))
		for t, rate := range best.MarginalRates {
			marginal[n.market.Types[t].Device] = rate
		}
	}
	each, served := f.shares(best.Use)
	for t, k := range n.pool {
		if k == 0 {
			continue
		}
		d := n.market.Types[t].Device
		machines[d] += k
		if each != nil {
			parts[d] = each[t] / served / float64(k) * (1 - float64(learning)/float64(all))
		}
	}
	return machines, parts, marginal, nil
}

// prefer appends the types of an app's pool to the preferred ones: base types first, as in the paper's FCFS (§7), then
// those that serve more sizes, then those that are faster at the smallest.
func (x *state) prefer(out *plan.Plan, n *appRent) {
	var types []int
	for t, k := range n.pool {
		if k > 0 {
			types = append(types, t)
		}
	}
	slices.SortStableFunc(types, func(a, b int) int {
		return cmp.Or(n.market.Region(b)-n.market.Region(a),
			cmp.Compare(n.market.Types[a].Latency[0], n.market.Types[b].Latency[0]))
	})
	add := func(d serving.DeviceTypeID) {
		if !slices.Contains(out.Prefer, d) {
			out.Prefer = append(out.Prefer, d)
		}
	}
	for _, t := range types {
		add(n.market.Types[t].Device)
	}
	for d, k := range n.explored {
		if k > 0 {
			add(serving.DeviceTypeID(d))
		}
	}
}

// forecast fills in what the pools can serve by their bounds, what they leave out, and the accuracy of the answers.
func (x *state) forecast(out *plan.Plan) {
	var queries, accuracy, without float64
	missing, shed := make([]float64, len(x.apps)), false
	for a := range x.apps {
		n := &x.apps[a]
		queries += n.rate
		accuracy += n.rate * x.r.Spec.Variants[n.variant].Accuracy
		without += n.rate * n.excluded
		out.Forecast.Throughput += out.Capacity[a] * (1 - n.excluded)
		if (n.bound != nil || n.sharing) && n.rate > out.Capacity[a]*(1+rounding) {
			missing[a], shed = n.rate-out.Capacity[a], true
		}
	}
	out.Forecast.Accuracy = accuracy / queries
	if without > 0 {
		out.Forecast.Violation = without / queries
	}
	if shed {
		out.Shed = missing
	}
}
