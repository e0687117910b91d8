package profile

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// twoStages is an app of two stages of one variant each, with an objective.
func twoStages(slo serving.SLO) *serving.Spec {
	return &serving.Spec{
		DeviceTypes: make([]serving.DeviceType, 1), Workers: make([]serving.Worker, 1),
		Apps: []serving.App{{Name: "a", SLO: slo, Stages: []serving.StageID{0, 1}}},
		Stages: []serving.Stage{
			{Variants: []serving.VariantID{0}, Next: []serving.Edge{{To: 1, FanOut: 1}}},
			{Variants: []serving.VariantID{1}, Joins: 1},
		},
		Variants: []serving.Variant{{MaxBatch: 8}, {Stage: 1, MaxBatch: 4}},
	}
}

func TestObjective(t *testing.T) {
	const ms = time.Millisecond
	spec := twoStages(serving.SLO{})
	held := twoStages(serving.SLO{})
	held.Stages[1].Queue = &serving.QueueRules{Delay: 300 * ms}
	for _, c := range []struct {
		name  string
		spec  *serving.Spec
		p     Profile
		items int
		want  time.Duration
	}{
		{"the least", spec, Constant{Base: ms}, 1, 50 * ms},
		{"four times both stages, rounded up", spec, Constant{Base: 20 * ms}, 1, 200 * ms},
		{"twice the largest query, in parts at the second stage", spec, Constant{PerItem: 20 * ms}, 8, 500 * ms},
		{"with what the queue holds back", held, Constant{Base: 20 * ms}, 1, 500 * ms},
		{"nothing known", spec, Constant{Base: Unknown}, 1, 50 * ms},
	} {
		if got := Objective(c.spec, c.p, 0, c.items); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestStretched(t *testing.T) {
	slow := Constant{Base: 20 * time.Millisecond} // 200 ms would be proposed
	for _, c := range []struct {
		name   string
		slo    serving.SLO
		closed bool
		want   time.Duration
	}{
		{"too short", serving.SLO{Latency: time.Millisecond, Proposed: true}, false, 200 * time.Millisecond},
		{"asked for", serving.SLO{Latency: time.Millisecond}, false, time.Millisecond},
		{"long enough", serving.SLO{Latency: time.Second, Proposed: true}, false, time.Second},
		{"closed", serving.SLO{Latency: time.Millisecond, Proposed: true}, true, time.Millisecond},
	} {
		spec := twoStages(c.slo)
		spec.Apps[0].Closed = c.closed
		got := Stretched(spec, slow, nil)
		if got.Apps[0].SLO.Latency != c.want || (got == spec) != (c.want == c.slo.Latency) ||
			spec.Apps[0].SLO.Latency != c.slo.Latency {
			t.Errorf("%s: %v, want %v; before %v", c.name, got.Apps[0].SLO.Latency, c.want, spec.Apps[0].SLO.Latency)
		}
	}
	large := serving.Mix{Sizes: []int32{1, 8}, Shares: []float64{0.5, 0.5}}
	spec := twoStages(serving.SLO{Latency: time.Millisecond, Proposed: true})
	got := Stretched(spec, Constant{PerItem: 20 * time.Millisecond}, []serving.Mix{large})
	if want := 500 * time.Millisecond; got.Apps[0].SLO.Latency != want {
		t.Errorf("with queries of 8 items %v, want %v", got.Apps[0].SLO.Latency, want)
	}
}
