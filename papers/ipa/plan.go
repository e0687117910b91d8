package ipa

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// plan makes the plan of a choice that carries a part of the demand.
func (x *request) plan(r *plan.Request, c *choice, part float64) *plan.Plan {
	out := r.NewPlan("ipa")
	var offers []capacity.Offer
	var counts []int
	for s := range x.spec.Stages {
		if f := x.chosen(c, serving.StageID(s)); f != nil {
			offers, counts = append(offers, *f), append(counts, x.replicas(f, part))
		}
	}
	var of []int
	out.Instances, of, out.Loads = capacity.PlaceOffers(r, x.groups, offers, counts)
	for n := range out.Instances {
		f := &offers[of[n]]
		out.Instances[n].Share = 1 / float64(counts[of[n]])
		out.Instances[n].BatchTimeout = max(seconds(x.queueing(f)), 1)
	}
	out.Budgets = x.budgets(c)
	out.Forecast.CostPerHour = r.CostPerHour(out.Instances)
	x.fillForecast(out, c, part)
	rule := capacity.BatchRule{Batches: x.p.Options.Batches}
	rule.ShareLeftOut(r, x.believed, out, capacity.Sharers{})
	return out
}

// seconds returns a duration; one that no duration holds becomes a long one.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, float64(math.MaxInt64/4)/1e9) * 1e9)
}

// budgets divides every objective in proportion to what stages take by the program, along the way that takes longest.
// A stage that is left out counts as much as its app's others do in the mean.
func (x *request) budgets(c *choice) []time.Duration {
	out := make([]time.Duration, len(x.spec.Stages))
	for a := range x.spec.Apps {
		app := &x.spec.Apps[a]
		sum, known := 0.0, 0
		takes := make(map[serving.StageID]float64)
		for _, s := range app.Stages {
			if f := x.chosen(c, s); f != nil {
				takes[s] = f.Run.Seconds() + x.queueing(f)
				sum += takes[s]
				known++
			}
		}
		longest, ends := 0.0, make(map[serving.StageID]float64)
		for _, s := range app.Stages {
			if x.chosen(c, s) == nil {
				takes[s] = 1
				if known > 0 {
					takes[s] = sum / float64(known)
				}
			}
			ends[s] += takes[s]
			longest = max(longest, ends[s])
			for _, e := range x.spec.Stages[s].Next {
				ends[e.To] = max(ends[e.To], ends[s])
			}
		}
		for _, s := range app.Stages {
			out[s] = time.Duration(takes[s] / longest * float64(app.SLO.Latency-app.Slack))
		}
	}
	return out
}

// fillForecast fills in demand, capacity, what is left out and the accuracy.
func (x *request) fillForecast(out *plan.Plan, c *choice, part float64) {
	apps := make([]capacity.Outlook, len(x.spec.Apps))
	for a := range apps {
		y := &apps[a]
		y.Demand, y.Capacity, y.Accuracy = x.rates[a], math.Inf(1), 1
		for _, s := range x.spec.Apps[a].Stages {
			f := x.chosen(c, s)
			if f == nil {
				y.Capacity = 0
				continue
			}
			if x.items[s] > 0 {
				y.Capacity = min(y.Capacity, float64(x.replicas(f, part))*f.Rate/x.items[s]*x.rates[a])
			}
			y.Accuracy *= x.spec.Variants[f.Variant].Accuracy
		}
		if math.IsInf(y.Capacity, 1) {
			y.Capacity = x.rates[a]
		}
		y.Served = min(y.Capacity, x.rates[a])
		if part < 1 || c.left > 0 {
			y.Missing = max(x.rates[a]-y.Capacity, 0)
		}
	}
	capacity.Foresee(out, apps)
}
