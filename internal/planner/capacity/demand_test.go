package capacity

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// byStage takes as long as its entry for the variant's stage says, for any batch. There is a variant for each stage.
type byStage []time.Duration

func (b byStage) Latency(v serving.VariantID, _ serving.DeviceTypeID, _, _ int) time.Duration {
	return b[v]
}
func (byStage) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 0 }
func (byStage) Learner() profile.Learner                                   { return nil }

// Equal parts of the objective hold where each stage is in time with its own, and where no split is. Where one stage is
// slower than its part and the others leave it the time, parts are in proportion to run times.
func TestServableDemands(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		took byStage
		want []time.Duration
	}{
		{byStage{10 * ms, 20 * ms, 30 * ms}, []time.Duration{30 * ms, 30 * ms, 30 * ms}},
		{byStage{10 * ms, 40 * ms, 10 * ms}, []time.Duration{15 * ms, 60 * ms, 15 * ms}},
		{byStage{30 * ms, 40 * ms, 30 * ms}, []time.Duration{30 * ms, 30 * ms, 30 * ms}},
	} {
		spec := &serving.Spec{
			DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{Name: "w"}},
			Apps: []serving.App{{Name: "a", SLO: serving.SLO{Latency: 90 * ms}, Stages: []serving.StageID{0, 1, 2}}},
		}
		for s := range 3 {
			id := serving.StageID(s)
			spec.Stages = append(spec.Stages, serving.Stage{Variants: []serving.VariantID{serving.VariantID(s)}})
			spec.Variants = append(spec.Variants, serving.Variant{Stage: id, MaxBatch: 1})
			if s > 0 {
				spec.Stages[s-1].Next = []serving.Edge{{To: id, FanOut: 1}}
				spec.Stages[s].Joins = 1
			}
		}
		for s, d := range ServableDemands(c.took, spec, nil) {
			if d.Budget != c.want[s] {
				t.Errorf("%v: stage %d has %v, want %v", c.took, s, d.Budget, c.want[s])
			}
		}
	}
}
