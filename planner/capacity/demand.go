package capacity

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// MinRate is the rate in queries/s that an idle app is planned for, so that its first query finds it served.
const MinRate = 0.01

// StageDemand is the demand on one stage of an app.
type StageDemand struct {
	App serving.AppID
	// FanOut is the items that reach the stage for each item of a query. It uses mean fan-outs: where they scatter, a
	// join gets more, because the mean of a maximum is at least the maximum of the means.
	FanOut float64
	// Rate is the items/s that reach the stage, without head-room.
	Rate float64
	// Budget is the stage's part of the objective: the stages on the longest path of the app get equal parts.
	Budget time.Duration
	// BestAccuracy is the accuracy of the stage's most accurate variant.
	BestAccuracy float64
}

// StageDemands returns, by StageID, the demand on the stages at the given rates, which are by AppID in queries/s. A
// rate that is missing or lower counts as MinRate.
func StageDemands(spec *serving.Spec, rates []float64) []StageDemand {
	out := make([]StageDemand, len(spec.Stages))
	for a, app := range spec.Apps {
		rate := MinRate
		if a < len(rates) {
			rate = max(rates[a], MinRate)
		}
		depth, longest := make(map[serving.StageID]int), 1
		for _, s := range app.Stages {
			st := &out[s]
			if depth[s] == 0 {
				depth[s], st.FanOut = 1, 1
			}
			longest = max(longest, depth[s])
			st.App, st.Rate = serving.AppID(a), rate*st.FanOut
			for _, v := range spec.Stages[s].Variants {
				st.BestAccuracy = max(st.BestAccuracy, spec.Variants[v].Accuracy)
			}
			for _, e := range spec.Stages[s].Next {
				depth[e.To] = max(depth[e.To], depth[s]+1)
				// A join gets the most items that any edge delivers, as in the engine.
				out[e.To].FanOut = max(out[e.To].FanOut, st.FanOut*e.FanOut)
			}
		}
		for _, s := range app.Stages {
			out[s].Budget = time.Duration(float64(app.SLO.Latency-app.Slack) / float64(longest))
		}
	}
	return out
}

// NormalizedAccuracy returns the accuracy of a variant of the stage divided by that of the most accurate one; 1 when
// that is 0.
func (a StageDemand) NormalizedAccuracy(v *serving.Variant) float64 {
	if a.BestAccuracy <= 0 {
		return 1
	}
	return v.Accuracy / a.BestAccuracy
}
