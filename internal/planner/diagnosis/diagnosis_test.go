package diagnosis

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// needs is a search over a planner that carries apps whose objectives and memory are long and large enough.
func needs(slo []time.Duration, memory int64) *Search {
	spec := &serving.Spec{DeviceTypes: []serving.DeviceType{{MemoryBytes: mebibyte}}}
	for range slo {
		spec.Apps = append(spec.Apps, serving.App{SLO: serving.SLO{Latency: 10 * time.Millisecond}})
	}
	s := &Search{Request: plan.Request{Spec: spec}}
	s.Enough = func(x *Change) bool {
		for a := range x.Spec.Apps {
			if x.Spec.Apps[a].SLO.Latency < slo[a] {
				return false
			}
		}
		return x.Spec.DeviceTypes[0].MemoryBytes >= memory
	}
	return s
}

// One app's objective is lengthened where that is enough, to one per cent and what rounding adds; all where it is not.
func TestLengthen(t *testing.T) {
	for _, c := range []struct {
		slo  []time.Duration
		apps int
	}{
		{[]time.Duration{37 * time.Millisecond, 0}, 1},
		{[]time.Duration{37 * time.Millisecond, 25 * time.Millisecond}, 2},
		{[]time.Duration{time.Second, 0}, 0}, // beyond what is looked for
	} {
		s := needs(c.slo, 0)
		s.Lengthen()
		if (c.apps == 0) != (len(s.Out.Remedies) == 0) {
			t.Fatalf("%v: %+v", c.slo, s.Out.Remedies)
		}
		for _, m := range s.Out.Remedies {
			to := m.SLOs[0].To
			if len(m.SLOs) != c.apps || to < c.slo[0] || float64(to) > 1.016*float64(c.slo[0]) {
				t.Errorf("%v: %+v", c.slo, m)
			}
		}
	}
}

// With a relaxation that allows less than is enough the factor is found from there on.
func TestSmallest(t *testing.T) {
	for _, relaxed := range []float64{1, 3, 9.99} {
		s := needs([]time.Duration{100 * time.Millisecond}, 0)
		s.Possible = func(x *Change) bool {
			return float64(x.Spec.Apps[0].SLO.Latency) >= relaxed*float64(10*time.Millisecond)
		}
		got, ok := s.Smallest(64, true, func(factor float64) *Change {
			return s.Altered(func(apps []serving.App) {
				apps[0].SLO.Latency = time.Duration(factor * float64(apps[0].SLO.Latency))
			})
		})
		if !ok || got < 10 || got > 10.2 {
			t.Errorf("possible from %v: factor %v, want 10", relaxed, got)
		}
	}
}

func TestAddMemory(t *testing.T) {
	s := needs([]time.Duration{0}, 5*mebibyte)
	s.AddMemory([]serving.DeviceTypeID{0})
	if len(s.Out.Remedies) != 1 || s.Out.Remedies[0].Memory[0].To != 5*mebibyte {
		t.Errorf("%+v", s.Out.Remedies)
	}
}

// Stages of one app share its objective: the longest that any of them needs.
func TestServable(t *testing.T) {
	s := needs([]time.Duration{0, 0}, 0)
	s.Out.Unserved = []UnservedStage{
		{App: 1, Stage: 0, SLO: 30 * time.Millisecond}, {App: 1, Stage: 1, SLO: 50 * time.Millisecond},
		{App: 0, Stage: 2, Floor: 0.7}, {App: 0, Stage: 3, Floor: 0.6},
	}
	remedy, x, ok := s.Servable()
	if !ok || !slices.Equal(remedy.SLOs, []Objective{{1, 50 * time.Millisecond}}) ||
		!slices.Equal(remedy.Floors, []Floor{{0, 0.6}}) || x.Spec.Apps[1].SLO.Latency != 50*time.Millisecond {
		t.Errorf("%+v", remedy)
	}
	s.Out.Unserved = append(s.Out.Unserved, UnservedStage{App: 1, Stage: 4})
	if _, _, ok := s.Servable(); ok {
		t.Error("a stage that nothing can serve is servable")
	}
}

// The worst bottleneck comes first; of stages that nothing serves each says what all of them keep from being carried.
func TestBottlenecks(t *testing.T) {
	s := needs([]time.Duration{0, 0}, 0)
	s.Request.Spec.Stages = []serving.Stage{{App: 0}, {App: 1}, {App: 1}}
	s.FindBottlenecks(1, func(stages []serving.StageID) float64 { return []float64{1.001, 2, math.Inf(1)}[stages[0]] })
	if len(s.Out.Bottlenecks) != 2 || s.Out.Bottlenecks[0].Stage != 2 || !slices.Equal(s.Narrow(), []serving.AppID{1}) {
		t.Errorf("%+v", s.Out.Bottlenecks)
	}
	s.Out = Diagnosis{Unserved: []UnservedStage{{Stage: 0}, {Stage: 2, App: 1}}}
	s.FindBottlenecks(0, func(stages []serving.StageID) float64 { return float64(len(stages)) })
	if len(s.Out.Bottlenecks) != 2 || s.Out.Bottlenecks[1] != (Bottleneck{1, 2, 2}) {
		t.Errorf("%+v", s.Out.Bottlenecks)
	}
}

// A mix of machines comes first if it is cheaper, or as cheap with fewer machines.
func TestFoundMachines(t *testing.T) {
	mix := func(cost float64, n int) Remedy {
		return Remedy{CostPerHour: cost, Add: []Addition{{0, n}, {1, 1}}}
	}
	singles := []Remedy{{CostPerHour: 3, Add: []Addition{{1, 4}}}, {CostPerHour: 2, Add: []Addition{{0, 4}}}}
	for _, c := range []struct {
		mix   Remedy
		first float64
		n     int
	}{{mix(1, 9), 1, 3}, {mix(2, 2), 2, 3}, {mix(2, 3), 2, 2}, {mix(5, 1), 2, 2}, {Remedy{}, 2, 2}} {
		var s Search
		s.FoundMachines(slices.Clone(singles), c.mix)
		if len(s.Out.Remedies) != c.n || s.Out.Remedies[0].CostPerHour != c.first {
			t.Errorf("%+v: %+v", c.mix, s.Out.Remedies)
		}
	}
}
