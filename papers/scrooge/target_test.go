package scrooge

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// twoVariants has an app with a fast and an accurate variant, on machines of a dear and of a cheap type. The accurate
// one serves 100/s on a machine, the fast one 200/s.
func twoVariants(t *testing.T, dear, cheap int) (*serving.Spec, *profile.Table) {
	t.Helper()
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "dear", PricePerHour: 3}, {Name: "cheap", PricePerHour: 1}},
		Apps: []serving.App{{
			Name: "app", SLO: serving.SLO{Latency: 100 * time.Millisecond, Percentile: 99}, Weight: 1, QueueLimit: 1000,
			Stages: []serving.StageID{0},
		}},
		Stages: []serving.Stage{{Name: "app", Variants: []serving.VariantID{0, 1}}},
		Variants: []serving.Variant{
			{Name: "fast", Accuracy: 0.7, MaxBatch: 1}, {Name: "accurate", Accuracy: 0.9, MaxBatch: 1},
		},
	}
	var m serving.Measurements
	for d, n := range []int{dear, cheap} {
		for range n {
			spec.Workers = append(spec.Workers, serving.Worker{DeviceType: serving.DeviceTypeID(d)})
		}
		for v, took := range []time.Duration{5 * time.Millisecond, 10 * time.Millisecond} {
			m.Latency = append(m.Latency, simtest.Point(serving.VariantID(v), serving.DeviceTypeID(d), 1, 1, took, 0))
		}
	}
	p, err := profile.NewTable(spec, m, profile.Mean)
	if err != nil {
		t.Fatal(err)
	}
	return spec, p
}

// used is the workers of a plan by device type, and its variants.
func used(p *plan.Plan, spec *serving.Spec) (types [2]int, variants [2]int) {
	seen := make(map[serving.WorkerID]bool)
	for _, i := range p.Instances {
		variants[i.Variants[0].Variant]++
		if !seen[i.Worker] {
			seen[i.Worker] = true
			types[spec.Workers[i.Worker].DeviceType]++
		}
	}
	return types, variants
}

// Without a target the cheapest variant serves. With one the accurate one does, on more machines, as long as these
// carry the demand; beyond that demand comes first.
func TestTargetsAreKeptWhileTheDemandIsCarried(t *testing.T) {
	for _, c := range []struct {
		target, rate float64
		accurate     bool
	}{{0, 150, false}, {0.85, 150, true}, {0.85, 350, true}, {0.85, 500, false}, {0.7, 150, false}} {
		spec, p := twoVariants(t, 0, 4)
		spec.Apps[0].AccuracyTarget = c.target
		out := ask(t, &Planner{Profile: p}, plan.Request{Spec: spec, Rates: []float64{c.rate}})
		_, variants := used(out, spec)
		if (variants[0] == 0) != c.accurate || (variants[1] > 0) != c.accurate || out.Shortage != nil {
			t.Errorf("target %v at %v/s: instances of variants %v, short of %v", c.target, c.rate, variants,
				out.Shortage)
		}
	}
}

// Dear machines that are owned have no price to save: they serve before rented ones that cost less. Rented ones, and
// those of which nothing is said, are used last.
func TestOwnedMachinesSaveNothing(t *testing.T) {
	for tenure, want := range map[serving.Tenure][2]int{
		serving.Owned: {2, 0}, serving.Rented: {0, 2}, serving.TenureUnstated: {0, 2},
	} {
		spec, p := twoVariants(t, 2, 2)
		spec.DeviceTypes[0].Tenure, spec.DeviceTypes[1].Tenure = tenure, serving.Rented
		out := ask(t, &Planner{Profile: p}, plan.Request{Spec: spec, Rates: []float64{300}})
		if types, _ := used(out, spec); types != want {
			t.Errorf("tenure %q: %v dear and cheap machines, want %v", tenure, types, want)
		}
	}
}
