package capacity

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
)

// MinRate is the rate in queries/s that an idle app is planned for, so that its first query finds it served.
const MinRate = 0.01

// StageDemand is the demand on one stage of an app.
type StageDemand struct {
	App serving.AppID
	// FanOut is the items that reach the stage for each item of a query (pipeline.Graph.MeanItems).
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
		g := pipeline.New(spec, serving.AppID(a))
		budget := time.Duration(float64(app.SLO.Latency-app.Slack) / float64(g.LongestPath()))
		for at, fanOut := range g.MeanItems() {
			s := g.Stage(at)
			st := &out[s]
			st.App, st.FanOut, st.Rate, st.Budget = serving.AppID(a), fanOut, rate*fanOut, budget
			st.BestAccuracy = spec.BestOfStage(s)
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
