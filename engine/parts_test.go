package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/report"
)

// cutMachine is one machine of 4 threads and one accelerator, and parts of it: half, 3 threads, and all of its threads.
func cutMachine() *serving.Spec {
	return &serving.Spec{
		DeviceTypes: []serving.DeviceType{
			{Name: "machine", Cores: 4, Accelerators: 1}, {Name: "half", Part: true, Cores: 2, Percent: 50},
			{Name: "three", Part: true, Cores: 3}, {Name: "all", Part: true, Cores: 4, Percent: 60},
		},
		Workers: []serving.Worker{{Name: "w"}},
		Apps: []serving.App{
			{
				Name: "a", SLO: serving.SLO{Latency: time.Second, Percentile: 99}, Weight: 1, QueueLimit: 100,
				Stages: []serving.StageID{0},
			},
		},
		Stages:   []serving.Stage{{Name: "a", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "m", Accuracy: 1, MaxBatch: 8}},
	}
}

// An instance that gets another part is replaced by a new one. That starts beside the old one where the machine has
// room for both, otherwise after it. Usage is counted by part.
func TestPartsAreHandedOver(t *testing.T) {
	spec := cutMachine()
	e, err := systems.System{Router: "roundrobin", Batcher: "single"}.Engine(spec,
		profile.Constant{Base: time.Millisecond}, plan.Shares|plan.Limits)
	if err != nil {
		t.Fatal(err)
	}
	with := func(parts ...int32) engine.Input {
		p := &plan.Plan{}
		for n, d := range parts {
			p.Instances = append(p.Instances, plan.Instance{
				Place: int32(n) + 1, Variants: []plan.Variant{{Limit: 1}}, Slots: 1, Share: 1, Part: d + 1,
			})
		}
		return engine.Input{Kind: engine.PlanReady, Plan: p}
	}
	step := func(at serving.Time, in ...engine.Input) string {
		t.Helper()
		var out []string
		for _, d := range e.Step(at, in) {
			out = append(out, strings.Join(strings.Fields(d.String())[:2], " "))
			if d.Kind == engine.LaunchInstance {
				out[len(out)-1] += " on " + spec.DeviceTypes[d.Launch.DeviceType].Name
			}
		}
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
		return strings.Join(out, ", ")
	}
	ready := func(i serving.InstanceID) engine.Input {
		return engine.Input{Kind: engine.InstanceChanged, Change: engine.VariantReady, Instance: i}
	}
	second := serving.Time(time.Second)
	for n, c := range []struct {
		at   serving.Time
		in   engine.Input
		want string
	}{
		{0, with(1), "launch-instance i1 on half"},
		{second, ready(1), ""},
		{2 * second, with(1), ""},
		{3 * second, with(1, 1), "launch-instance i2 on half"},
		{4 * second, ready(2), ""},
		// 2 of the 4 threads stay taken: the other half must stop before three threads are free.
		{5 * second, with(2), "stop-instance i1, stop-instance i2, launch-instance i3 on three"},
		{6 * second, ready(3), ""},
		{7 * second, with(3), "stop-instance i3, launch-instance i4 on all"},
	} {
		if got := step(c.at, c.in); got != c.want {
			t.Errorf("step %d: %q, want %q", n, got, c.want)
		}
	}
	// Two halves for 5 s and 2 s, three threads for 2 s, all for 3 s.
	want := report.Usage{
		Slots: 12 * time.Second, Threads: (10 + 4 + 6 + 12) * time.Second, Percent: (250 + 100 + 180) * time.Second,
		Span: 10 * time.Second,
	}
	if got := e.Usage(10 * second); got != want {
		t.Errorf("usage %+v, want %+v", got, want)
	}
}

// Instances on a whole machine hold it once, from the first to the last.
func TestUsageOfWholeMachines(t *testing.T) {
	spec := cutMachine()
	e, err := systems.System{Router: "roundrobin", Batcher: "single"}.Engine(spec,
		profile.Constant{Base: time.Millisecond}, plan.Shares|plan.Limits)
	if err != nil {
		t.Fatal(err)
	}
	one := plan.Instance{Variants: []plan.Variant{{Limit: 1}}, Slots: 1, Share: 1}
	for n, instances := range [][]plan.Instance{{one}, {one, one}, {one}, nil, {one}} {
		e.Step(serving.Time(n)*serving.Time(time.Second), []engine.Input{
			{Kind: engine.PlanReady, Plan: &plan.Plan{Instances: slices.Clone(instances)}},
		})
	}
	// The second instance stays for a second more, since the first is never ready.
	want := report.Usage{
		Slots: 6 * time.Second, Threads: 16 * time.Second, Percent: 400 * time.Second, Span: 5 * time.Second,
	}
	if got := e.Usage(serving.Time(5 * time.Second)); got != want {
		t.Errorf("usage %+v, want %+v", got, want)
	}
}
