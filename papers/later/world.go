package later

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/sim/truth"
)

const (
	ms = time.Millisecond
	us = time.Microsecond
)

// model is a variant. A batch of b items takes base + b item, unless it was measured.
type model struct {
	name       string
	accuracy   float64
	base, item time.Duration
}

// stage is a stage of a chain: its variants, and how many items it sends to the next stage for each of its own.
type stage struct {
	name   string
	models []model
	fanOut float64
}

// setting is a world: apps that are chains of stages, on machines of one type that are rented for 1 $/h each.
type setting struct {
	apps     [][]stage
	machines int
	slo      time.Duration
	maxBatch int
	measured map[string][]time.Duration // by model and batch size - 1
	scatter  bool                       // batches scatter by 3 %; otherwise they take exactly what was profiled
}

// loadTime is how long a variant takes to load.
const loadTime = 500 * ms

// environment makes the world.
func (s *setting) environment(solver milp.Solver) (*experiment.Environment, error) {
	spec := &serving.Spec{DeviceTypes: []serving.DeviceType{{
		Name: "machine", Cores: 1, PricePerHour: 1, Tenure: serving.Rented,
	}}}
	for w := range s.machines {
		spec.Workers = append(spec.Workers, serving.Worker{Name: fmt.Sprintf("machine-%d", w)})
	}
	var m serving.Measurements
	for a, stages := range s.apps {
		app := serving.App{
			Name: fmt.Sprintf("app-%d", a), SLO: serving.SLO{Latency: s.slo, Percentile: 99}, Weight: 1,
			QueueLimit: 1 << 30,
		}
		for n, st := range stages {
			id := serving.StageID(len(spec.Stages))
			app.Stages = append(app.Stages, id)
			out := serving.Stage{Name: st.name, App: serving.AppID(a), Joins: min(n, 1)}
			if n+1 < len(stages) {
				out.Next = []serving.Edge{{To: id + 1, FanOut: st.fanOut}}
			}
			for _, x := range st.models {
				v := serving.VariantID(len(spec.Variants))
				out.Variants = append(out.Variants, v)
				spec.Variants = append(spec.Variants, serving.Variant{
					Name: x.name, Stage: id, Accuracy: x.accuracy, MaxBatch: s.maxBatch,
				})
				m.Load = append(m.Load, serving.LoadPoint{Variant: v, Load: loadTime})
				for b := 1; b <= s.maxBatch; b++ {
					m.Latency = append(m.Latency, point(v, b, s.took(&x, b), s.scatter))
				}
			}
			spec.Stages = append(spec.Stages, out)
		}
		spec.Apps = append(spec.Apps, app)
	}
	shape := truth.Exact
	if s.scatter {
		shape = truth.Lognormal
	}
	env, err := reproduce.NewEnvironment(spec, m, profile.P95, shape)
	if err == nil {
		env.Solver = solver
	}
	return env, err
}

// scatter is the standard deviation of a batch's time relative to its mean; sigmas is how many of them are between the
// mean and the 95th percentile.
const (
	scatter = 0.03
	sigmas  = 1.645
)

// took is the time of a batch of b items.
func (s *setting) took(x *model, b int) time.Duration {
	if m := s.measured[x.name]; m != nil {
		return m[b-1]
	}
	return x.base + time.Duration(b)*x.item
}

// point is the measurement of a batch of b items.
func point(v serving.VariantID, b int, took time.Duration, scatters bool) serving.LatencyPoint {
	p := reproduce.Always(serving.LatencyPoint{Variant: v, Items: b, Concurrency: 1, Samples: 100}, took)
	if scatters {
		p.StdDev = time.Duration(scatter * float64(took))
		p.P95 = took + time.Duration(sigmas*scatter*float64(took))
		p.P99 = p.P95
	}
	return p
}
