package sim

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// failing is a planner that returns an error for the second and third request and a plan that is not valid for the
// fourth.
type failing struct {
	*simtest.Planner
	asked int
}

func (f *failing) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	f.asked++
	switch f.asked {
	case 2, 3:
		return nil, errors.New("no room")
	case 4:
		p, err := f.Planner.Plan(ctx, r)
		if err != nil {
			return nil, err
		}
		p.Instances = append(p.Instances, plan.Instance{Worker: 99, Slots: 1})
		return p, nil
	}
	return f.Planner.Plan(ctx, r)
}

// The result counts failures of the planner and plans that are not valid, by reason, with the first error of each. The
// plan in force stays, and every query is served.
func TestPlanFailuresAreReported(t *testing.T) {
	c := simtest.Uniform(2, time.Millisecond, time.Millisecond, 100*time.Millisecond, 8)
	s := systems.System{Router: "shortestqueue", Batcher: "greedy", Scaler: "periodic"}
	s.Options.Replan = time.Second
	e, err := s.Engine(c.Spec, c.Profile, c.Planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Exact, workload.Rand(1, "service"))
	if err != nil {
		t.Fatal(err)
	}
	var load []workload.Arrival
	for k := range 700 {
		load = append(load, workload.Arrival{At: serving.Time(k) * 1e7, Variant: serving.None, Items: 1})
	}
	rec := report.NewRecorder([]report.AppInfo{{Name: "app"}}, report.Options{})
	result, err := Run(Config{
		Spec: c.Spec, Engine: e, Truth: tr, Initial: c.Plan, Warm: true, Source: workload.FromSlice(load),
		Planner: &failing{Planner: c.Planner}, PlanDelay: time.Millisecond, Recorder: rec, Check: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []report.PlanFailure{
		{Reason: "planning failed", Count: 2, FirstS: 2.001, First: "no room"}, {
			Reason: "the plan is not valid", Count: 1, FirstS: 4.001,
			First: "plan of static, instance 2: worker 99 does not exist",
		},
	}; !reflect.DeepEqual(result.PlanFailures, want) {
		t.Errorf("failures %+v, want %+v", result.PlanFailures, want)
	}
	if o := rec.Report(report.Meta{}).Overall; o.Served != 700 {
		t.Errorf("%d of 700 queries were served", o.Served)
	}
}
