package loadadaptive

import (
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
)

// ModelSwitching (HotCloud 2020; RAMSIS §7) measures in advance the response latency of every variant at every load,
// and takes the most accurate variant whose percentile of it, the 99th in the paper, is within the objective. The
// measurement is a simulation: the workers take batches from one queue under Poisson arrivals. If no variant is in
// time, the fastest one runs.
type ModelSwitching struct {
	Seed uint64 // of the arrivals
	// Span is the simulated time of each measurement; 0 means 300 s, as in the authors' code.
	Span time.Duration
}

const (
	modelSwitchingSpan  = 300 * time.Second
	modelSwitchingRates = 20
)

// Name implements Rule.
func (ModelSwitching) Name() string { return "modelswitching" }

// rates returns equally spaced rates up to the capacity of the fastest variant, and one beyond.
func (ModelSwitching) rates(s *stage) []float64 {
	most := s.capacity(&s.variants[s.fastest()], anyTime)
	out := make([]float64, modelSwitchingRates+1)
	for n := range out {
		out[n] = most * float64(n+1) / modelSwitchingRates
	}
	return out
}

func (m ModelSwitching) choose(s *stage, rate float64) choice {
	span := m.Span
	if span == 0 {
		span = modelSwitchingSpan
	}
	for at := range s.variants {
		v := &s.variants[at]
		limits := s.sharedLimits(v, rate)
		if s.capacityWithin(v, limits) <= rate {
			continue // the queue would grow without end
		}
		// All variants get the same arrivals, so that results differ by the variant alone.
		r := rand.New(rand.NewPCG(m.Seed, uint64(rate*1e6)))
		if late, ok := s.simulate(v, limits, rate, span, r); ok {
			return choice{
				variant: at, limits: limits, promise: plan.Promise{
					Accuracy: v.accuracy, Violation: late, Utilization: rate / s.capacityWithin(v, limits),
				},
			}
		}
	}
	at := s.fastest()
	v := &s.variants[at]
	limits := s.sharedLimits(v, rate)
	return choice{
		variant: at, limits: limits, promise: plan.Promise{
			Accuracy: v.accuracy, Violation: -1, Utilization: min(1, rate/s.capacityWithin(v, limits)),
		},
	}
}

// sharedLimits returns, by group, the batch limits of a variant at a rate: those of the variant that Jellyfish would
// choose, as in the authors' code. So a variant may run batches of more than half the objective where by Jellyfish's
// measure only a faster one carries the load; the simulation then decides whether they are in time.
func (s *stage) sharedLimits(v *variant, rate float64) []int {
	c := Jellyfish{}.choose(s, rate)
	out := v.ownLimits()
	for g := range out {
		out[g] = min(out[g], c.limits[g])
	}
	return out
}

// capacityWithin returns the queries/s of all workers with batches up to the given limits, by group.
func (s *stage) capacityWithin(v *variant, limits []int) float64 {
	out := 0.0
	for g := range s.groups {
		best := 0.0
		for b := 1; b <= limits[g]; b++ {
			best = max(best, v.rate(g, b))
		}
		out += float64(s.groups[g].workers) * best
	}
	return out
}
