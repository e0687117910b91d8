package server

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Plans are tried when models came after the start as if they had been there from the start, also when earlier ones
// were closed: with the run times that were measured, which scatter, not with those that are believed.
func TestPlansAreTriedWhenTheWorldHasGrown(t *testing.T) {
	first := hosttest.Profiled(t, hosttest.Apps)
	measured := first.Measurements()
	for k := range measured.Latency { // one batch in twenty takes four times the mean, so plans believe four times
		m := &measured.Latency[k]
		m.StdDev, m.P95 = m.Mean/2, 4*m.Mean
	}
	first, err := first.WithMeasurements(measured, first.Origin)
	if err != nil {
		t.Fatal(err)
	}
	p, err := first.Unplanned()
	if err != nil {
		t.Fatal(err)
	}
	planner, err := p.OpenPlanner(p.System(), p.Policies())
	if err != nil {
		t.Fatal(err)
	}
	tried := func(planner plan.Planner, r plan.Request) *plan.Trial {
		t.Helper()
		got, err := planner.Plan(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Trials) == 0 {
			t.Fatal("no plan is tried")
		}
		return &got.Trials[0]
	}
	const rate = 600 // more than is believed to be possible
	want := tried(p.PlannerInUse(), plan.Request{Spec: p.Spec(), Rates: []float64{rate}})

	spec, at := p.Spec().WithAppsOf(p.Spec(), nil)
	spec.Apps[at.Apps[0]].Name = "later"
	for _, m := range slices.Clone(measured.Latency) {
		m.Variant = at.Variants[m.Variant]
		measured.Latency = append(measured.Latency, m)
	}
	for name, grown := range map[string]*serving.Spec{"grown": spec, "and closed": spec.WithClosed(0)} {
		beliefs, err := profile.NewTable(grown, measured, profile.P95)
		if err != nil {
			t.Fatal(err)
		}
		got := tried(planner, plan.Request{
			Spec: grown, Rates: []float64{0, rate}, Beliefs: beliefs,
			Known: &plan.Known{Measurements: measured, Profile: beliefs},
		})
		// Apps draw arrivals of their own.
		if math.Abs(got.Violation-want.Violation) > 0.02 {
			t.Errorf("%s: a trial finds %.3f late, and %.3f with the same models at the start", name, got.Violation,
				want.Violation)
		}
	}
	beliefs, err := profile.NewTable(spec, measured, profile.P95)
	if err != nil {
		t.Fatal(err)
	}
	got := tried(planner, plan.Request{Spec: spec, Rates: []float64{0, rate}, Beliefs: beliefs, Known: &plan.Known{}})
	if got.Violation < want.Violation+0.1 {
		t.Errorf("a trial finds %.3f late with what is measured, and %.3f as believed", want.Violation, got.Violation)
	}
	// A request of before the world grew is answered as it was then.
	if late := tried(planner, plan.Request{Spec: p.Spec(), Rates: []float64{rate}}); !reflect.DeepEqual(late, want) {
		t.Errorf("a plan for an earlier world says %+v, at the time it said %+v", late, want)
	}
}
