package rules

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// scene is an app of two stages, the content of its frames and a scaler that follows it.
type scene struct {
	c       *Complexity
	v       scale.View
	rng     *rand.Rand
	rate    func(at serving.Time) float64
	sends   func(at serving.Time) float64
	seen    *monitor.Rates
	factors *monitor.Factors
	refuses bool // no plan follows a request
	asked   []serving.Time
	rates   []float64
	fans    []float64
}

func newScene(seed uint64) *scene {
	spec := &serving.Spec{
		Apps:   []serving.App{{SLO: serving.SLO{Latency: time.Second}, Stages: []serving.StageID{0, 1}}},
		Stages: []serving.Stage{{Next: []serving.Edge{{To: 1, FanOut: 2}}}, {Joins: 1}},
	}
	s := &scene{
		c: NewComplexity(0, 0), rng: rand.New(rand.NewPCG(seed, 3)), seen: monitor.NewRates(1),
		factors: monitor.NewFactors(spec),
	}
	s.v = scale.View{
		Spec: spec, Monitor: &s.seen.View, Waiting: []int{0}, Factors: &s.factors.FactorView,
		Plan: &plan.Plan{Demand: []float64{40}},
	}
	s.rate = func(serving.Time) float64 { return 40 }
	s.sends = func(serving.Time) float64 { return 2 }
	return s
}

// until plays frames and calls the scaler when it asked to be called. A plan comes at once.
func (s *scene) until(t *testing.T, end serving.Time) {
	t.Helper()
	next, wake := s.v.Now+1, s.v.Now+1
	for min(next, wake) < end {
		if next <= wake {
			s.seen.Add(next, 0)
			s.factors.AddItems(next, 0, 0, 1, s.sends(next))
			next += max(1, serving.Time(s.rng.ExpFloat64()/s.rate(next)*1e9))
			continue
		}
		s.v.Now = wake
		ask, again := s.c.Decide(&s.v)
		if again <= wake {
			t.Fatalf("at %v asked to be called again at %v", wake, again)
		}
		if wake = again; !ask {
			continue
		}
		rates := make([]float64, 1)
		s.c.Demand(&s.v, rates)
		s.v.LastRequest = s.v.Now
		fans := s.v.Factors.Scalings(s.v.Now)
		if !s.refuses {
			s.v.Plan = &plan.Plan{Demand: rates, FanOuts: fans}
		}
		fan := 2.0
		if fans != nil {
			fan = fans[0][0]
		}
		s.asked, s.rates, s.fans = append(s.asked, s.v.Now), append(s.rates, rates[0]), append(s.fans, fan)
	}
	s.v.Now = end
}

// Busier content leads to a plan within a second although frames come as before. Content that stays the same leads to
// none.
func TestComplexityFollowsContent(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(seed)
		s.until(t, 20e9)
		if len(s.asked) > 3 { // a few by chance
			t.Fatalf("seed %d: steady frames are asked about at %v", seed, s.asked)
		}
		begun := len(s.asked)
		s.sends = func(serving.Time) float64 { return 8 }
		s.until(t, 30e9)
		n := len(s.asked)
		if n == begun || n > begun+2 || s.asked[begun] > 21e9 || math.Abs(s.fans[n-1]-8) > 0.5 {
			t.Fatalf("seed %d: asked at %v with fan-outs %v", seed, s.asked, s.fans)
		}
		if r := s.rates[n-1]; math.Abs(r-40) > 20 {
			t.Errorf("seed %d: asked for %v queries/s, there are 40", seed, r)
		}
	}
}

// Clients that join lead to a plan within two seconds, those that leave to one plan after ten.
func TestComplexityFollowsDemand(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(seed)
		s.rate = func(at serving.Time) float64 {
			if at > 20e9 && at < 40e9 {
				return 160
			}
			return 40
		}
		s.until(t, 19e9)
		begun := len(s.asked)
		s.until(t, 39e9)
		up := len(s.asked)
		if up == begun || up > begun+3 || s.asked[begun] > 21e9 || math.Abs(s.rates[up-1]-160) > 50 {
			t.Fatalf("seed %d: asked at %v for %v", seed, s.asked, s.rates)
		}
		s.until(t, 70e9)
		down := len(s.asked)
		if down == up || down > up+2 || s.asked[up] < 50e9 || s.asked[up] > 58e9 || math.Abs(s.rates[down-1]-40) > 20 {
			t.Errorf("seed %d: asked at %v for %v", seed, s.asked, s.rates)
		}
	}
}

// A lost worker leads to a request at once. A planner that fails is not asked for five seconds, unless another worker
// is lost.
func TestComplexityAfterLoss(t *testing.T) {
	s := newScene(1)
	s.until(t, 12e9)
	begun := len(s.asked)
	s.refuses, s.v.BasisChanged = true, 12e9
	s.until(t, 17e9)
	if len(s.asked) != begun+1 || s.asked[begun] > 12.2e9 {
		t.Fatalf("asked at %v", s.asked)
	}
	s.v.BasisChanged = 17e9
	s.until(t, 18e9)
	if len(s.asked) != begun+2 || s.asked[begun+1] > 17.2e9 {
		t.Fatalf("asked at %v", s.asked)
	}
	s.sends = func(serving.Time) float64 { return 8 }
	s.until(t, 30e9)
	for k := begun + 3; k < len(s.asked); k++ {
		if s.asked[k]-s.asked[k-1] < 5e9 {
			t.Errorf("asked at %v", s.asked)
		}
	}
	if len(s.asked) < begun+4 {
		t.Errorf("asked at %v: what changed is forgotten", s.asked)
	}
}

// Plans are made for declared rates, at once when a client leaves. A rate far above the declared one counts all the
// same.
func TestComplexityFollowsDeclaredRates(t *testing.T) {
	s := newScene(4)
	open := func(stream uint64, rate float64) {
		s.seen.Open(0, stream, rate)
		s.v.BasisChanged = s.v.Now
	}
	s.v.Now = 1
	open(1, 30)
	open(2, 30)
	s.rate = func(at serving.Time) float64 {
		switch {
		case at < 20e9:
			return 60
		case at < 40e9:
			return 30
		}
		return 200
	}
	s.until(t, 20e9)
	for _, r := range s.rates {
		if r != 60 {
			t.Errorf("asked at %v for %v", s.asked, s.rates)
		}
	}
	n := len(s.asked)
	s.seen.Close(0, 2)
	s.v.BasisChanged = s.v.Now
	s.until(t, 40e9)
	if len(s.asked) != n+1 || s.asked[n] > 20.2e9 || s.rates[n] != 30 {
		t.Errorf("asked at %v for %v, want once more at 20 s for 30", s.asked, s.rates)
	}
	s.until(t, 50e9)
	if last := s.rates[len(s.rates)-1]; last < 150 {
		t.Errorf("asked at %v for %v, 200 come", s.asked, s.rates)
	}
}
