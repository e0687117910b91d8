package loki

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
)

// plan makes the plan of a solution.
func (x *request) plan(r *plan.Request, best *solution) *plan.Plan {
	out := r.NewPlan("loki")
	var of []int
	out.Instances, of, out.Loads = capacity.PlaceOffers(r, x.groups, x.offers, best.counts)
	carries := make([]float64, len(x.spec.Stages))
	for _, k := range of {
		carries[x.offers[k].Stage] += x.offers[k].Rate
	}
	x.share(out.Instances, of, carries)
	out.Budgets = x.budgets(best)
	for n := range out.Instances {
		i := &out.Instances[n]
		i.BatchTimeout = max(out.Budgets[i.Stage]-x.offers[of[n]].Run, 0)
	}
	out.Forecast.CostPerHour = r.CostPerHour(out.Instances)
	x.fillForecast(out, best, carries)
	rule := capacity.BatchRule{Batches: x.p.Options.Batches}
	rule.ShareLeftOut(r, x.believed, out, capacity.Sharers{})
	return out
}

// share fills the most accurate instances of each stage first, up to what they carry; the router goes on from there.
// What is beyond all of them is shared in proportion to what they carry.
func (x *request) share(instances []plan.Instance, of []int, carries []float64) {
	order := make([]int, len(instances))
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(x.accuracy(of[b]), x.accuracy(of[a]))
	})
	left := slices.Clone(x.items)
	for _, n := range order {
		o := &x.offers[of[n]]
		sent := o.Rate * x.items[o.Stage] / carries[o.Stage]
		if x.items[o.Stage] <= carries[o.Stage] {
			sent = min(o.Rate, left[o.Stage])
		}
		left[o.Stage] -= sent
		instances[n].Share = sent / x.items[o.Stage]
	}
}

// budgets divides the objective of every pipeline: each stage gets a part in proportion to the longest batch that it
// runs, along the branch that takes longest. Half of it is for queues.
func (x *request) budgets(best *solution) []time.Duration {
	out := make([]time.Duration, len(x.spec.Stages))
	run := make([]time.Duration, len(x.spec.Stages))
	for k, n := range best.counts {
		if o := &x.offers[k]; n > 0 {
			run[o.Stage] = max(run[o.Stage], o.Run)
		}
	}
	for n := range x.pipelines {
		pl := &x.pipelines[n]
		app := &x.spec.Apps[pl.app]
		longest := time.Duration(0)
		for _, b := range pl.branches {
			sum := time.Duration(0)
			for _, s := range b.stages {
				if run[s] == 0 { // it is left out
					run[s] = (app.SLO.Latency - app.Slack) / time.Duration(2*len(b.stages))
				}
				sum += run[s]
			}
			longest = max(longest, sum)
		}
		for _, b := range pl.branches {
			for _, s := range b.stages {
				out[s] = time.Duration(float64(run[s]) / float64(longest) * float64(app.SLO.Latency-app.Slack))
			}
		}
	}
	return out
}

// fillForecast fills in demand, capacity, what is left out and the accuracy.
func (x *request) fillForecast(out *plan.Plan, best *solution, carries []float64) {
	apps := make([]capacity.Outlook, len(x.spec.Apps))
	for a := range apps {
		apps[a].Demand = x.rates[a]
	}
	for n := range x.pipelines {
		a := x.pipelines[n].app
		y, rate := &apps[a], x.rates[a]
		y.Capacity, y.Accuracy = math.Inf(1), 1
		for _, s := range x.spec.Apps[a].Stages {
			if x.items[s] > 0 {
				y.Capacity = min(y.Capacity, carries[s]/x.items[s]*rate)
			}
			mean, sum := 0.0, 0.0
			for _, i := range out.Instances {
				if i.Stage == s {
					mean += i.Share * x.spec.Variants[i.Variants[0].Variant].Accuracy
					sum += i.Share
				}
			}
			if sum > 0 {
				y.Accuracy *= mean / sum
			}
		}
		if math.IsInf(y.Capacity, 1) {
			y.Capacity = rate
		}
		if y.Served = rate * (1 - best.shed[n]); best.shed[n] > 1e-6 {
			y.Missing = best.shed[n] * rate
		}
	}
	capacity.Foresee(out, apps)
}
