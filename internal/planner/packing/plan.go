package packing

import (
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// plan makes the plan from the placed instances. Shares are those for a load within the band (§3.2, case ii): the load
// of each instance lies between its bounds as the load of the function lies between the function's.
func (x *State) plan(r plan.Request) *plan.Plan {
	out := r.NewPlan(x.o.Name)
	for k := range x.Functions {
		f := &x.Functions[k]
		low, up := f.low(), f.up()
		for _, i := range f.running {
			w := x.Cluster.Servers[i.Server].worker
			p := plan.Instance{
				Worker: w, Place: i.place, Stage: f.stage,
				Variants: []plan.Variant{{Variant: i.Variant, Limit: i.Batch}}, Slots: 1, Cores: i.Threads,
				Share: share(i.Low, i.Up, low, up, f.Load), BatchTimeout: i.BatchTimeout, Low: i.Low, Up: i.Up,
			}
			if !i.Whole {
				p.Part, p.Accelerator = int32(i.Device)+1, int32(i.Accelerator)
			}
			if p.Place == 0 {
				p.Place = x.place(w)
				out.Loads++
			}
			out.Instances = append(out.Instances, p)
		}
	}
	out.Forecast.CostPerHour = r.CostPerHour(out.Instances)
	out.Sort()
	x.fillForecast(out)
	return out
}

// share returns the part of a load that an instance gets. low and up are the bounds of the instance, lows and ups those
// of the function, in queries/s.
func share(low, up, lows, ups, load float64) float64 {
	switch {
	case load >= ups || ups == lows:
		return up / ups
	case load <= lows:
		return low / lows
	}
	return (up - (ups-load)/(ups-lows)*(up-low)) / load
}

// place returns the place of a new instance on a worker: the first number that no instance there has, or had in the
// snapshot.
func (x *State) place(w serving.WorkerID) int32 {
	n := int32(1)
	for slices.Contains(x.numbers[w], n) {
		n++
	}
	x.numbers[w] = append(x.numbers[w], n)
	return n
}

// fillForecast fills in what the plan carries and leaves out of each app. The slowest stage of an app decides.
func (x *State) fillForecast(out *plan.Plan) {
	apps := make([]capacity.Outlook, len(x.Spec.Apps))
	for a, app := range x.Spec.Apps {
		y := &apps[a]
		y.Capacity, y.Accuracy = math.Inf(1), 1
		for _, s := range app.Stages {
			f := &x.Functions[s]
			if f.FanOut > 0 {
				y.Capacity = min(y.Capacity, f.up()/f.FanOut)
			}
			if len(f.running) > 0 {
				y.Accuracy *= x.Spec.Variants[f.running[0].Variant].Accuracy
			}
		}
		f := &x.Functions[app.Stages[0]]
		y.Demand, y.Served = f.Load, min(f.Load, y.Capacity)
		if missing := max(f.Load-y.Capacity, 0) / x.o.Headroom; missing > Tolerance*f.Load {
			y.Missing = missing
		}
	}
	capacity.Foresee(out, apps)
}
