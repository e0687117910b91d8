package serving

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func good() *Spec {
	return &Spec{
		DeviceTypes: []DeviceType{{Name: "d"}}, Workers: []Worker{{Name: "w"}},
		Apps: []App{{
			Name: "a", SLO: SLO{Latency: time.Second, Percentile: 99}, Weight: 1, QueueLimit: 1,
			Stages: []StageID{0, 1},
		}},
		Stages: []Stage{
			{
				Name: "s", Variants: []VariantID{0}, Next: []Edge{{To: 1, FanOut: 1}},
			}, {Name: "t", Variants: []VariantID{1}, Joins: 1},
		},
		Variants: []Variant{{Name: "v", Accuracy: 0.5, MaxBatch: 1}, {Name: "w", Stage: 1, Accuracy: 1, MaxBatch: 1}},
	}
}

func TestValidate(t *testing.T) {
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Spec){
		`device_types[0] "d": price_per_hour`: func(s *Spec) { s.DeviceTypes[0].PricePerHour = math.NaN() },
		`workers[0] "w": device type 3`:       func(s *Spec) { s.Workers[0].DeviceType = 3 },
		`variants[0] "v": accuracy is 1.5`:    func(s *Spec) { s.Variants[0].Accuracy = 1.5 },
		`variants[0] "v": max_batch is 0`:     func(s *Spec) { s.Variants[0].MaxBatch = 0 },
		`variants[0] "v": stage 9`:            func(s *Spec) { s.Variants[0].Stage = 9 },
		`stages[0] "s": has no variant`:       func(s *Spec) { s.Stages[0].Variants = nil },
		`variant 1 does not belong`:           func(s *Spec) { s.Stages[0].Variants = []VariantID{1} },
		`next stage 7 does not exist`:         func(s *Spec) { s.Stages[0].Next[0].To = 7 },
		`fan_out to "t" is -1`:                func(s *Spec) { s.Stages[0].Next[0].FanOut = -1 },
		`goes backwards`:                      func(s *Spec) { s.Apps[0].Stages = []StageID{1, 0} },
		`slo.latency is 0s`:                   func(s *Spec) { s.Apps[0].SLO.Latency = 0 },
		`slo.percentile is 0`:                 func(s *Spec) { s.Apps[0].SLO.Percentile = 0 },
		`queue_limit is 0`:                    func(s *Spec) { s.Apps[0].QueueLimit = 0 },
		`weight is 0`:                         func(s *Spec) { s.Apps[0].Weight = 0 },
		`has no stage`:                        func(s *Spec) { s.Apps[0].Stages = nil },
		`counts 2 incoming edges`:             func(s *Spec) { s.Stages[1].Joins = 2 },
	} {
		s := good()
		spoil(s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that says %q", err, want)
		}
	}
}

func TestOutcomeNames(t *testing.T) {
	for o := range Outcomes {
		if back, ok := ParseOutcome(Outcome(o).String()); !ok || back != Outcome(o) {
			t.Errorf("outcome %d: %v", o, back)
		}
	}
	if Never.Add(-time.Hour) != Never {
		t.Error("never stays never")
	}
}

func TestHosts(t *testing.T) {
	s := good()
	s.DeviceTypes = []DeviceType{{Name: "d", Cores: 2, MemoryBytes: 10}, {Name: "e", Cores: 4, Accelerators: 1}, {}}
	s.Workers = []Worker{{"v", 0}, {"w", 1}, {"x", 0}}
	for part, want := range map[DeviceType][]WorkerID{
		{Part: true, Cores: 2, MemoryBytes: 10}: {0, 1, 2},
		{Part: true, Cores: 2, MemoryBytes: 11}: {1},
		{Part: true, Cores: 3}:                  {1},
		{Part: true, Cores: 1, Percent: 1}:      {1},
		{Part: true, Cores: 5}:                  nil,
	} {
		s.DeviceTypes[2] = part
		if got := s.Hosts(2); !slices.Equal(got, want) {
			t.Errorf("%+v fits on %v, want %v", part, got, want)
		}
	}
}
