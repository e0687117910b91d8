package infaas

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// plan makes the plan from the placement. Shares are in proportion to what instances carry, so that all instances of a
// stage have the same utilisation.
func (x *state) plan(r plan.Request) *plan.Plan {
	out := r.NewPlan("infaas")
	groups := make([][]serving.WorkerID, len(x.groups))
	for g := range x.groups {
		groups[g] = x.groups[g].workers
	}
	offers := make([]capacity.Offer, len(x.options))
	for k, o := range x.options {
		offers[k] = capacity.Offer{Group: o.group, Stage: o.stage, Variant: o.variant, Limit: o.limit}
	}
	var of []int
	out.Instances, of, out.Loads = capacity.PlaceOffers(&r, groups, offers, x.counts)
	for n, k := range of {
		o := &x.options[k]
		st := &x.stages[o.stage]
		run := time.Duration(float64(o.limit) / o.rate * float64(time.Second))
		out.Instances[n].Share, out.Instances[n].BatchTimeout = o.rate/st.rate, max(st.Budget-run, 0)
	}
	out.Forecast.CostPerHour = r.CostPerHour(out.Instances)
	x.fillForecast(out)
	return out
}

// fillForecast fills in what the plan carries and leaves out of each app. The slowest stage of an app decides.
func (x *state) fillForecast(out *plan.Plan) {
	apps := make([]capacity.Outlook, len(x.spec.Apps))
	for a, app := range x.spec.Apps {
		y := &apps[a]
		y.Capacity, y.Accuracy = math.Inf(1), 1
		for _, s := range app.Stages {
			if st := &x.stages[s]; st.FanOut > 0 {
				y.Capacity = min(y.Capacity, st.rate/st.FanOut)
				y.Accuracy *= st.accuracy() * st.BestAccuracy
			}
		}
		asked := x.stages[app.Stages[0]].Rate
		y.Demand, y.Served = asked*x.o.Headroom, min(asked, y.Capacity)
		if missing := max(asked-y.Capacity, 0); missing > tolerance*asked {
			y.Missing = missing
		}
	}
	capacity.Foresee(out, apps)
}
