package capacity

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Alone is a request to a planner that knows apps of one stage and gives each worker to one of them.
type Alone struct {
	*Split
	Spec     *serving.Spec
	Believed profile.Profile
	Asked    []StageDemand // by StageID
	Broken   []bool        // by VariantID
}

// ReadAlone reads a request. oneType gives all workers of a stage the same type. It fails for an app of several stages,
// of which the planner knows one stage's slack or response alone, as knows says.
func ReadAlone(planner, knows string, r *plan.Request, p profile.Profile, oneType bool) (*Alone, error) {
	x := &Alone{Spec: r.Spec, Believed: r.Believed(p), Asked: StageDemands(r.Spec, r.Rates)}
	down, broken := Unusable(r.Spec, r.Snapshot)
	x.Broken = broken
	var err error
	x.Split, err = Splitter{
		Spec: r.Spec, Believed: x.Believed, Snapshot: r.Snapshot, Asked: x.Asked, Down: down, Broken: broken,
		OneType: oneType,
	}.Split()
	if err != nil {
		return nil, err
	}
	for a := range r.Spec.Apps {
		if app := &r.Spec.Apps[a]; len(app.Stages) > 1 {
			return nil, fmt.Errorf("app %q has %d stages: planner %s knows the %s of one; use planner proteus",
				app.Name, len(app.Stages), planner, knows)
		}
	}
	return x, nil
}

// Plan completes a plan to which stage has added, for each, instances and the capacity of the app. It returns what the
// stage promises.
func (x *Alone) Plan(out *plan.Plan, r *plan.Request, stage func(s serving.StageID) (plan.Promise, error)) error {
	out.Demand, out.Capacity = make([]float64, len(r.Spec.Apps)), make([]float64, len(r.Spec.Apps))
	out.Forecast.Violation = 0
	total := 0.0
	for s, a := range x.Asked {
		promise, err := stage(serving.StageID(s))
		if err != nil {
			return err
		}
		out.Demand[a.App] = a.Rate
		out.Forecast.Throughput += out.Capacity[a.App]
		out.Forecast.Accuracy += a.Rate * promise.Accuracy
		out.Forecast.Violation += a.Rate * promise.Violation
		total += a.Rate
	}
	out.Forecast.Accuracy /= total
	out.Forecast.Violation /= total
	return x.Finish(out, r)
}

// Finish completes a plan that has one instance for each stage of each worker, and its forecast.
func (x *Alone) Finish(out *plan.Plan, r *plan.Request) error {
	x.Complete(out)
	out.Forecast.CostPerHour = r.CostPerHour(out.Instances)
	out.Loads = Loads(r.Snapshot, out)
	return out.Validate(r.Spec)
}

// Latencies are the believed run times of a variant's batches on a device type, by items less one: of at most so many
// items, as far as they are known.
func Latencies(believed profile.Profile, v serving.VariantID, d serving.DeviceTypeID, most int) (out []time.Duration) {
	for b := 1; b <= most; b++ {
		l := believed.Latency(v, d, b, 1)
		if l >= profile.Unknown {
			break
		}
		out = append(out, l)
	}
	return out
}
