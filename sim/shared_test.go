package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// shared is alike machines that hold all variants of some apps, each of one stage.
type shared struct {
	machines int
	seconds  float64
	apps     []sharing
}

// sharing is one of the apps. A batch of n items takes base + n*each. The last variant is the most accurate.
type sharing struct {
	objective  time.Duration
	most       int     // items of a batch
	rate       float64 // queries/s, by chance
	base, each []time.Duration
}

// outcome is what has become of the queries of a run.
type outcome struct {
	all, inTime int
	utility     float64 // mean accuracy of all, relative to the best of their apps, 0 for what is late
}

// run serves the apps with a system's rules.
func (w *shared) run(t *testing.T, name string) (out outcome) {
	t.Helper()
	spec, m, place := w.spec()
	believed, err := profile.NewTable(spec, m, profile.P95)
	if err != nil {
		t.Fatal(err)
	}
	e, first := fixed(t, name, spec, believed, place)
	machines, err := truth.NewTable(spec, m, truth.Exact, nil)
	if err != nil {
		t.Fatal(err)
	}
	load := workload.Spec{Seed: 1, DurationS: w.seconds}
	ids := make(map[string]serving.AppID)
	for a := range spec.Apps {
		ids[spec.Apps[a].Name] = serving.AppID(a)
		load.Apps = append(load.Apps, workload.AppSpec{
			App: spec.Apps[a].Name, Process: "poisson", Rate: w.apps[a].rate,
		})
	}
	source, err := load.Source(func(name string) (serving.AppID, error) { return ids[name], nil })
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(Config{
		Spec: spec, Engine: e, Truth: machines, Initial: first, Warm: true, Source: source,
		Observe: func(now serving.Time, _ []engine.Input, decisions []engine.Decision) {
			for i := range decisions {
				d := &decisions[i]
				if d.Kind != engine.EndQuery {
					continue
				}
				out.all++
				if d.Outcome == serving.Served && now <= d.Deadline {
					out.inTime++
					out.utility += d.Accuracy / accuracyOf(len(w.apps[d.App].base)-1)
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	out.utility /= float64(out.all)
	return out
}

func accuracyOf(variant int) float64 { return 0.6 + 0.1*float64(variant) }

func (w *shared) spec() (*serving.Spec, serving.Measurements, []static.Instance) {
	spec := &serving.Spec{DeviceTypes: []serving.DeviceType{{Name: "cpu", Cores: 4}}}
	var m serving.Measurements
	var place []static.Instance
	for k := range w.machines {
		spec.Workers = append(spec.Workers, serving.Worker{Name: fmt.Sprint("machine", k)})
	}
	for a, x := range w.apps {
		s := serving.StageID(a)
		spec.Apps = append(spec.Apps, serving.App{
			Name: fmt.Sprint("app", a), SLO: serving.SLO{Latency: x.objective, Percentile: 99}, Weight: 1,
			QueueLimit: 1 << 20, Stages: []serving.StageID{s},
		})
		stage := serving.Stage{Name: "only", App: serving.AppID(a)}
		for v := range x.base {
			id := serving.VariantID(len(spec.Variants))
			stage.Variants = append(stage.Variants, id)
			spec.Variants = append(spec.Variants, serving.Variant{
				Name: fmt.Sprintf("app%d-v%d", a, v), Stage: s, Accuracy: accuracyOf(v), MaxBatch: x.most,
			})
			for n := 1; n <= x.most; n *= 2 {
				takes := x.base[v] + time.Duration(n)*x.each[v]
				m.Latency = append(m.Latency, simtest.Point(id, 0, n, 1, takes, 0))
			}
		}
		spec.Stages = append(spec.Stages, stage)
		for k := range spec.Workers {
			place = append(place, static.Instance{
				Worker: serving.WorkerID(k), Stage: s, Variants: stage.Variants, Slots: 1, Limit: x.most,
			})
		}
	}
	return spec, m, place
}
