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
	hosts := make([]capacity.GroupVariant, len(x.options))
	for k, o := range x.options {
		hosts[k] = capacity.GroupVariant{Group: o.group, Stage: o.stage, Variant: o.variant}
	}
	at, loads := capacity.PlaceCounts(groups, hosts, x.counts, x.running)
	out.Loads = loads
	for w, worker := range x.spec.Workers {
		k, ok := at[serving.WorkerID(w)]
		if !ok {
			continue
		}
		o, device := &x.options[k], &x.spec.DeviceTypes[worker.DeviceType]
		st := &x.stages[o.stage]
		run := time.Duration(float64(o.limit) / o.rate * float64(time.Second))
		out.Instances = append(out.Instances, plan.Instance{
			Worker: serving.WorkerID(w), Place: 1, Stage: o.stage,
			Variants: []plan.Variant{{Variant: o.variant, Limit: o.limit}}, Slots: 1,
			Cores: device.Cores, Share: o.rate / st.rate, Hold: max(st.Budget-run, 0),
		})
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
