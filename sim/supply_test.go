package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
)

// rentedWorld has n machines to rent, each for about 40 queries/s of an app, and its latencies.
func rentedWorld(n int) (*serving.Spec, serving.Measurements) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{
			Name: "rented", PricePerHour: 1, Tenure: serving.Rented, Cores: 1, MaxMachines: n,
		}},
		Apps: []serving.App{{
			Name: "app", SLO: serving.SLO{Latency: 300 * time.Millisecond, Percentile: 99}, Weight: 1, QueueLimit: 1000,
			Stages: []serving.StageID{0},
		}},
		Stages:   []serving.Stage{{Name: "app", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "v", Accuracy: 0.9, MaxBatch: 8}},
	}
	for w := range n {
		spec.Workers = append(spec.Workers, serving.Worker{Name: fmt.Sprint("w", w)})
	}
	var m serving.Measurements
	for b := 1; b <= 8; b *= 2 {
		m.Latency = append(m.Latency, simtest.Point(0, 0, b, 1, time.Duration(b)*20*time.Millisecond, 0))
	}
	m.Load = append(m.Load, serving.LoadPoint{Load: 500 * time.Millisecond})
	return spec, m
}

// rentedRun runs the default system on rented machines, with 60 queries/s for 80 s, and calls see for each step.
func rentedRun(t *testing.T, s *Supply, faults []Fault, see func(serving.Time, []engine.Input, []engine.Decision)) {
	t.Helper()
	spec, m := rentedWorld(5)
	p, err := profile.NewTable(spec, m, profile.Mean)
	if err != nil {
		t.Fatal(err)
	}
	system, err := systems.Get(systems.Default)
	if err != nil {
		t.Fatal(err)
	}
	made, err := system.NewPlanner(systems.PlannerInputs{Profile: p})
	if err != nil {
		t.Fatal(err)
	}
	e, tr, first := begun(t, spec, m, p, system, made, 60)
	rng := rand.New(rand.NewPCG(1, 8))
	var load []workload.Arrival
	for at := 0.0; at < 80; at += rng.ExpFloat64() / 60 {
		load = append(load, workload.Arrival{At: serving.Time(at * float64(time.Second)), Items: 1,
			Variant: serving.None})
	}
	if _, err = Run(Config{
		Spec: spec, Engine: e, Truth: tr, Initial: first, Warm: true, Source: workload.FromSlice(load), Planner: made,
		PlanDelay: 100 * time.Millisecond, Check: true, Supply: s, Faults: faults, Observe: see,
	}); err != nil {
		t.Fatal(err)
	}
}

// usedAt lists the workers that a plan uses.
func used(in []engine.Input) (workers map[serving.WorkerID]bool) {
	for k := range in {
		if x := &in[k]; x.Kind == engine.PlanReady {
			workers = make(map[serving.WorkerID]bool)
			for _, i := range x.Plan.Instances {
				workers[i.Worker] = true
			}
		}
	}
	return workers
}

// A machine whose loss is announced costs nothing: its work moves before. Without the announcement queries are missed.
func TestNoticeMovesWorkFirst(t *testing.T) {
	missed := func(notice time.Duration) (n int) {
		supply := &Supply{Starts: []time.Duration{8 * time.Second}, Linger: 5 * time.Second}
		fault := Fault{At: serving.Time(40 * time.Second), Worker: 0, Notice: notice}
		rentedRun(t, supply, []Fault{fault}, func(_ serving.Time, in []engine.Input, out []engine.Decision) {
			for k := range out {
				if d := &out[k]; d.Kind == engine.EndQuery && d.Outcome != serving.Served &&
					d.Arrived > serving.Time(35*time.Second) {
					n++
				}
			}
		})
		return n
	}
	with, without := missed(20*time.Second), missed(0)
	t.Logf("missed with a notice of 20 s: %d, without: %d", with, without)
	if with > 0 {
		t.Errorf("with a notice %d queries were missed", with)
	}
	if without == 0 {
		t.Error("without a notice none was missed: this test shows nothing")
	}
}

// A machine that cannot be had is told to the planner, and the plan goes elsewhere. How long machines take to come is
// learned.
func TestMissingMachineIsPlannedAround(t *testing.T) {
	supply := &Supply{
		Starts: []time.Duration{2 * time.Second}, Linger: time.Second, Timeout: 3 * time.Second,
	}
	for w := range serving.WorkerID(5) {
		if w >= 2 { // the two of the first plan are there; of the others, only w4 can be had
			supply.Gaps = append(supply.Gaps, Gap{Worker: w, From: 0, Until: serving.Time(time.Hour)})
		}
	}
	supply.Gaps = supply.Gaps[:2]
	fault := Fault{At: serving.Time(30 * time.Second), Worker: 0, Until: serving.Time(time.Hour),
		Notice: 10 * time.Second}
	var missing []serving.WorkerID
	var last map[serving.WorkerID]bool
	came := time.Duration(0)
	rentedRun(t, supply, []Fault{fault}, func(_ serving.Time, in []engine.Input, _ []engine.Decision) {
		for k := range in {
			if x := &in[k]; x.Kind == engine.MachineChanged && x.Machine == engine.MachineMissing {
				missing = append(missing, x.Worker)
			} else if x.Kind == engine.MachineChanged && x.Machine == engine.MachineCame {
				came = x.Took
			}
		}
		if u := used(in); u != nil {
			last = u
		}
	})
	if !last[4] || last[2] || last[3] {
		t.Errorf("the last plan uses %v, missing were %v: want worker 4, which alone can be had", last, missing)
	}
	if came != 2*time.Second {
		t.Errorf("the machine came after %v, want 2 s", came)
	}
}
