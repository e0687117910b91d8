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

// pipeline is an app of three stages in a row on workers of one type: the things in a frame are cropped, then each is
// read. Batches take base and a millisecond an item, loads half a second.
func pipeline(workers int, fan float64) (*serving.Spec, serving.Measurements) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "gpu", PricePerHour: 3.6}},
		Apps: []serving.App{
			{
				Name: "traffic", SLO: serving.SLO{
					Latency: 600 * time.Millisecond, Percentile: 99,
				}, Weight: 1, QueueLimit: 1000,
			},
		},
	}
	for w := range workers {
		spec.Workers = append(spec.Workers, serving.Worker{Name: fmt.Sprintf("w%d", w)})
	}
	var m serving.Measurements
	for s, name := range []string{"detect", "crop", "read"} {
		id := serving.VariantID(s)
		st := serving.Stage{Name: name, Variants: []serving.VariantID{id}, Joins: min(s, 1)}
		if s < 2 {
			st.Next = []serving.Edge{{To: serving.StageID(s + 1), FanOut: []float64{fan, 1}[s]}}
		}
		spec.Apps[0].Stages = append(spec.Apps[0].Stages, serving.StageID(s))
		spec.Stages = append(spec.Stages, st)
		spec.Variants = append(spec.Variants, serving.Variant{
			Name: name, Stage: serving.StageID(s), Accuracy: 0.9, MaxBatch: 32,
		})
		for b := 1; b <= 32; b *= 2 {
			m.Latency = append(m.Latency, simtest.Point(id, 0, b, 1,
				10*time.Millisecond+time.Duration(b)*time.Millisecond, 0))
		}
		m.Load = append(m.Load, serving.LoadPoint{Variant: id, Load: 500 * time.Millisecond})
	}
	return spec, m
}

// A worker that is lost and stays down is left out of the next plan, which is made at once. Its work runs elsewhere,
// and every query from soon after the loss on is answered in time, with planners that place instances themselves.
func TestPipelineLosesAWorker(t *testing.T) {
	for _, planner := range []string{"infaas", "static", "scrooge"} {
		for lost := range serving.WorkerID(3) {
			t.Run(fmt.Sprintf("%s/%d", planner, lost), func(t *testing.T) {
				spec, m := pipeline(5, 2)
				p, err := profile.NewTable(spec, m, profile.Mean)
				if err != nil {
					t.Fatal(err)
				}
				system := systems.System{
					Planner: planner, Router: "weighted", Batcher: "earlydrop", Scaler: "complexity",
				}
				made, err := system.NewPlanner(systems.PlannerInputs{Profile: p, Spread: true})
				if err != nil {
					t.Fatal(err)
				}
				e, tr, first := begun(t, spec, m, p, system, made, 20)
				at := serving.Time(20 * time.Second)
				var planned serving.Time // when a plan without the worker came into force
				rng := rand.New(rand.NewPCG(uint64(lost), 8))
				ended, missed := 0, 0
				load := stepped(rng, 20, 60)
				_, err = Run(Config{
					Spec: spec, Engine: e, Truth: tr, Initial: first, Warm: true, Source: workload.FromSlice(load),
					Planner: made, PlanDelay: 100 * time.Millisecond, Check: true,
					Faults: []Fault{
						{At: at, Worker: lost, Until: serving.Time(time.Hour)},
					}, Limit: serving.Time(70 * time.Second),
					Observe: func(now serving.Time, in []engine.Input, out []engine.Decision) {
						for k := range in {
							if x := &in[k]; x.Kind == engine.PlanReady && now > at && planned == 0 {
								planned = now
								for _, i := range x.Plan.Instances {
									if i.Worker == lost {
										planned = 0
									}
								}
							}
						}
						for k := range out {
							if d := &out[k]; d.Kind == engine.EndQuery {
								ended++
								late := d.Outcome != serving.Served || d.Late
								if settled := planned.Add(2 * time.Second); late &&
									(d.Arrived < at-serving.Time(time.Second) || planned > 0 && d.Arrived > settled) {
									missed++
									t.Errorf("at %v, query of %v: %v (%v); the plan without the worker came at %v", now,
										d.Arrived, d.Outcome, d.Reason, planned)
								}
							}
						}
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				used := false
				for _, i := range first.Instances {
					used = used || i.Worker == lost
				}
				if ended != len(load) {
					t.Errorf("%d of %d queries ended", ended, len(load))
				}
				if used && (planned == 0 || planned > at.Add(3*time.Second)) {
					t.Errorf("the worker was lost at %v, a plan without it came at %v", at, planned)
				}
				t.Logf("in use %v, plan without it at %v", used, planned)
			})
		}
	}
}
