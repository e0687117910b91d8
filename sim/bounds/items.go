package bounds

import (
	"math"

	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/serving"
)

// itemsOf returns the items that a query brings to each stage of its app, by position in App.Stages: as recorded, or
// as the fan-outs say. Queries of the same app and size share a slice.
func (w *Watch) itemsOf(a *workload.Arrival) []float64 {
	if a.Stages != nil {
		stages := w.spec.Apps[a.App].Stages
		out := make([]float64, len(stages))
		for k, s := range stages {
			out[k] = float64(a.Stages[w.spec.Stages[s].Name])
		}
		return out
	}
	key := brought{a.App, max(a.Items, 1)}
	out, ok := w.items[key]
	if !ok {
		out = Items(w.spec, a.App, int(key.items))
		w.items[key] = out
	}
	return out
}

// Items returns the least items that a query of a size brings to each stage of its app, by position in App.Stages,
// where its content is what the fan-outs say. Each task of a query sends its items times the fan-out, rounded. A query
// is one task at the first stage, and one for each item, or some items, at the others.
func Items(spec *serving.Spec, a serving.AppID, items int) []float64 {
	app := &spec.Apps[a]
	out := make([]float64, len(app.Stages))
	at := make(map[serving.StageID]int, len(app.Stages))
	for k, s := range app.Stages {
		at[s] = k
	}
	out[0] = float64(items)
	for k, s := range app.Stages {
		for _, e := range spec.Stages[s].Next {
			sent := out[k] * math.Round(e.FanOut)
			if k == 0 {
				sent = math.Round(out[k] * e.FanOut)
			} else if out[k] > fewTasks {
				sent = min(sent, out[k]*max(e.FanOut-0.5, 0))
			}
			out[at[e.To]] = max(out[at[e.To]], sent)
		}
	}
	return out
}

// fewTasks is up to how many items a query has a task for each of them at every stage but the first.
const fewTasks = 256
