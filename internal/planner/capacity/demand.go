package capacity

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/dag"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/serving/profile"
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

// ServableDemands is StageDemands, but for apps of which equal parts of the objective leave a stage without a variant
// that answers one item in time, though the fastest variants answer within the objective from end to end. Their stages
// get parts in proportion to those run times. Only device types of workers count.
func ServableDemands(believed profile.Profile, spec *serving.Spec, rates []float64) []StageDemand {
	out := StageDemands(spec, rates)
	present := make([]bool, len(spec.DeviceTypes))
	for _, w := range spec.Workers {
		present[w.DeviceType] = true
	}
	for a := range spec.Apps {
		app := &spec.Apps[a]
		if len(app.Stages) < 2 {
			continue
		}
		g := pipeline.New(spec, serving.AppID(a))
		run, tight := make([]time.Duration, g.Len()), false
		for at := range run {
			s := g.Stage(at)
			run[at] = fastest(believed, spec, s, present)
			tight = tight || run[at] > out[s].Budget
		}
		if !tight || slices.Max(run) >= profile.Unknown {
			continue
		}
		objective := app.SLO.Latency - app.Slack
		before, behind := dag.Around(g.Following(), run)
		parts, fit := make([]time.Duration, g.Len()), true
		for at := range run {
			path := before[at] + run[at] + behind[at]
			parts[at] = time.Duration(float64(objective) * float64(run[at]) / float64(max(path, 1)))
			fit = fit && parts[at] >= run[at]
		}
		for at := range parts {
			if fit {
				out[g.Stage(at)].Budget = parts[at]
			}
		}
	}
	return out
}

// fastest is the least time that one item takes at a stage on device types that are present, with variants that are not
// below the floor and fit; profile.Unknown for none.
func fastest(believed profile.Profile, spec *serving.Spec, s serving.StageID, present []bool) time.Duration {
	least := profile.Unknown
	for _, v := range spec.Stages[s].Variants {
		x := &spec.Variants[v]
		if x.Retired || spec.BelowFloor(v) {
			continue
		}
		for d := range present {
			memory := spec.DeviceTypes[d].MemoryBytes
			if present[d] && (memory <= 0 || x.MemoryBytes+x.ItemBytes <= memory) {
				least = min(least, believed.Latency(v, serving.DeviceTypeID(d), 1, 1))
			}
		}
	}
	return least
}

// NormalizedAccuracy returns the accuracy of a variant of the stage divided by that of the most accurate one; 1 when
// that is 0.
func (a StageDemand) NormalizedAccuracy(v *serving.Variant) float64 {
	if a.BestAccuracy <= 0 {
		return 1
	}
	return v.Accuracy / a.BestAccuracy
}
