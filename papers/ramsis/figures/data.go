// Package ramsis runs the experiments of RAMSIS (EuroSys 2024, §7 and appendix A.4 of its artifact) with the engine,
// planners and simulator of this project. Profiles and traces are those that the authors published.
package ramsis

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

//go:embed data/*.csv
var files embed.FS

var data = reproduce.Data{Files: files}

// readPublished reads an embedded table that begins with columns of keys and continues with numbers. The numbers are by
// the keys, joined by spaces.
func readPublished(name, head string, keys int) (map[string][]float64, error) {
	out := make(map[string][]float64)
	return out, data.Read(name, head, keys, func(key []string, v []float64) error {
		out[strings.Join(key, " ")] = v
		return nil
	})
}

// model is a model of Figure 3 or 9.
type model struct {
	name     string
	accuracy float64           // per cent
	took     [32]time.Duration // 95th percentile, by batch size - 1
}

// models reads the models of a task, the fastest first.
func models(task string) (out []model, err error) {
	err = data.Read("latency.csv", "task,model,accuracy_pct,batch,p95_ns", 2, func(key []string, v []float64) error {
		if key[0] != task {
			return nil
		}
		if len(out) == 0 || out[len(out)-1].name != key[1] {
			out = append(out, model{name: key[1], accuracy: v[0]})
		}
		m := &out[len(out)-1]
		if b := int(v[1]); b < 1 || b > len(m.took) {
			return fmt.Errorf("batch %d", b)
		}
		m.took[int(v[1])-1] = time.Duration(v[2])
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, m := range out {
		if slices.Contains(m.took[:], 0) {
			return nil, fmt.Errorf("data/latency.csv: a batch of %s is missing", m.name)
		}
	}
	return out, nil
}

// newSpec returns a spec of equal workers, each of which can run every model of a task, and the measured latencies.
func newSpec(s setup) (*serving.Spec, serving.Measurements, error) {
	var m serving.Measurements
	list, err := s.models()
	if err != nil {
		return nil, m, err
	}
	out := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "n1-standard-4", Cores: 4}},
		Apps: []serving.App{{
			Name: s.task, SLO: serving.SLO{Latency: s.slo, Percentile: 99}, Late: serving.ServeLate, Weight: 1,
			Floor:      s.floor,
			QueueLimit: 1 << 30, Stages: []serving.StageID{0},
		}},
		Stages: []serving.Stage{{Name: s.task}},
	}
	for w := range s.workers {
		out.Workers = append(out.Workers, serving.Worker{Name: fmt.Sprintf("worker-%d", w)})
	}
	for v, x := range list {
		out.Variants = append(out.Variants, serving.Variant{
			Name: x.name, Accuracy: x.accuracy / 100, MaxBatch: len(x.took),
		})
		out.Stages[0].Variants = append(out.Stages[0].Variants, serving.VariantID(v))
		for b, took := range x.took {
			m.Latency = append(m.Latency, reproduce.Always(serving.LatencyPoint{
				Variant: serving.VariantID(v), Items: b + 1, Concurrency: 1,
			}, took))
		}
	}
	return out, m, out.Validate()
}
