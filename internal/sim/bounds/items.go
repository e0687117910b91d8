package bounds

import (
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
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
	if w.even != nil {
		return w.even.Bring(a.App, a.Items)
	}
	key := brought{a.App, max(a.Items, 1)}
	out, ok := w.items[key]
	if !ok {
		out = Items(w.spec, a.App, int(key.items))
		w.items[key] = out
	}
	return out
}

// Items returns the items that a query of a size brings to each stage of its app, by position in App.Stages, where its
// content is what the fan-outs say, and these are whole.
func Items(spec *serving.Spec, a serving.AppID, items int) []float64 {
	return truth.NewEven(spec).Bring(a, int32(items))
}
