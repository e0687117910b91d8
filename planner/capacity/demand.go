package capacity

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Least is the rate in queries/s that an app nobody calls is planned for, so that the first who does finds it served.
const MinRate = 0.01

// Asked is what an app asks of one of its stages.
type StageDemand struct {
	App serving.AppID
	// Fan is the items that reach the stage for each item that a query of the app comes with. Where fan-outs scatter, a
	// join gets more than this: the mean of a maximum is at least the maximum of the means.
	FanOut float64
	// Rate is the items/s that reach it, without head-room.
	Rate float64
	// Within is the stage's part of the objective: an app of several stages is cut into equal parts along its longest
	// path.
	Budget time.Duration
	// Best is the accuracy of its most accurate variant.
	BestAccuracy float64
}

// Ask returns, by StageID, what rates of queries/s by AppID ask of the stages. Missing rates count as Least.
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
				// a join takes the most that any edge delivers, as the engine has it
				out[e.To].FanOut = max(out[e.To].FanOut, st.FanOut*e.FanOut)
			}
		}
		for _, s := range app.Stages {
			out[s].Budget = time.Duration(float64(app.SLO.Latency-app.Slack) / float64(longest))
		}
	}
	return out
}

// Value is the accuracy of a stage's variant divided by that of its most accurate one.
func (a StageDemand) NormalizedAccuracy(v *serving.Variant) float64 {
	if a.BestAccuracy <= 0 {
		return 1
	}
	return v.Accuracy / a.BestAccuracy
}
