package experiment

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/fluid"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// latencies takes base + items*each by variant on every device type, times the type's factor.
type latencies struct {
	base, each []time.Duration // by VariantID
	factor     []float64       // by DeviceTypeID
}

func (l *latencies) Latency(v serving.VariantID, d serving.DeviceTypeID, items, n int) time.Duration {
	return time.Duration(l.factor[d] * float64(l.base[v]+time.Duration(items)*l.each[v]) * float64(n))
}
func (*latencies) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return time.Second }
func (*latencies) Learner() profile.Learner                                   { return nil }

// fleetOf is three types of machines, memory for about a third of five variants of each app, and a demand in queries/s
// for all apps together.
func fleetOf(workers, apps int, price, demand float64) (*plan.Request, *latencies) {
	rng := rand.New(rand.NewPCG(7, 8))
	l := &latencies{factor: []float64{1, 0.5, 2}}
	spec := &serving.Spec{}
	for k := range 3 {
		t := serving.DeviceType{
			Name: fmt.Sprint("d", k), Cores: 1, MemoryBytes: int64(apps) * 5 * 100 << 20 / 3,
			PricePerHour: price * []float64{1, 1.8, 0.6}[k],
		}
		if price > 0 {
			t.Tenure = serving.Rented
		}
		spec.DeviceTypes = append(spec.DeviceTypes, t)
		for range workers/3 + (workers%3+2-k)/3 {
			spec.Workers = append(spec.Workers, serving.Worker{Name: "w", DeviceType: serving.DeviceTypeID(k)})
		}
	}
	rates := make([]float64, apps)
	for a := range apps {
		id := serving.StageID(a)
		spec.Apps = append(spec.Apps, serving.App{
			Name: fmt.Sprint("a", a), Weight: 1, QueueLimit: 1 << 20, Stages: []serving.StageID{id},
			SLO: serving.SLO{Latency: time.Duration(50+rng.IntN(150)) * time.Millisecond, Percentile: 99},
		})
		rates[a] = (0.5 + rng.Float64()) * demand / float64(apps)
		spec.Stages = append(spec.Stages, serving.Stage{Name: "s", App: serving.AppID(a)})
		for v := range 5 {
			spec.Stages[a].Variants = append(spec.Stages[a].Variants, serving.VariantID(len(spec.Variants)))
			spec.Variants = append(spec.Variants, serving.Variant{
				Name: "v", Stage: id, Accuracy: 0.6 + 0.08*float64(v), MaxBatch: 16,
				MemoryBytes: int64(40+rng.IntN(120)) << 20,
			})
			l.base = append(l.base, time.Duration(1+v)*time.Millisecond)
			l.each = append(l.each, time.Duration(2+2*v)*time.Millisecond)
		}
	}
	return &plan.Request{Spec: spec, Rates: rates, Beliefs: l}, l
}

// A plan of the default system with all its trials.
func BenchmarkPlanWithTrials(b *testing.B) {
	for _, c := range []struct {
		workers, apps int
		price         float64
	}{{40, 10, 0}, {40, 10, 1}, {2000, 50, 0}, {2000, 50, 1}} {
		name := fmt.Sprintf("%dx%d", c.workers, c.apps)
		if c.price > 0 {
			name += "-rented"
		}
		b.Run(name, func(b *testing.B) {
			r, l := fleetOf(c.workers, c.apps, c.price, 100*float64(c.workers))
			p := &fluid.Planner{Profile: l, Options: fluid.Options{Pooled: true}, Try: trialsOf(b).Try}
			for b.Loop() {
				out, err := p.Plan(b.Context(), *r)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(out.Trials)), "trials")
			}
		})
	}
}

// One trial of a plan for 40 machines and ten apps at 1,000 queries/s.
func BenchmarkTryFleet(b *testing.B) {
	r, l := fleetOf(40, 10, 0, 1000)
	made, err := (&fluid.Planner{Profile: l, Options: fluid.Options{Pooled: true}}).Plan(b.Context(), *r)
	if err != nil {
		b.Fatal(err)
	}
	trials := trialsOf(b)
	for b.Loop() {
		got, err := trials.Try(b.Context(), r, made)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(got.Queries), "queries")
	}
}

func trialsOf(b *testing.B) Trials {
	b.Helper()
	system, err := systems.Get("sluice")
	if err != nil {
		b.Fatal(err)
	}
	return Trials{System: system}
}
