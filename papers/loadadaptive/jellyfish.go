package loadadaptive

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
)

// Jellyfish is Jellyfish+ (RAMSIS §7, after Jellyfish, RTSS 2022): the most accurate variant whose throughput, summed
// over the workers, exceeds the load. Its batches take at most half the objective, since a query may wait for as long
// as the batch before it runs. If no variant carries the load, the fastest one runs with batches of any size.
type Jellyfish struct {
	// Headroom is the factor on the load that a variant must carry; 0 means 1.05, as in the authors' code.
	Headroom float64
}

const jellyfishHeadroom = 1.05

// Name implements Rule.
func (Jellyfish) Name() string { return "jellyfish" }

func (j Jellyfish) headroom() float64 {
	if j.Headroom == 0 {
		return jellyfishHeadroom
	}
	return j.Headroom
}

// rates returns the rates at which the choice changes, and a higher one for overload. So the policies equal the rule at
// every rate.
func (j Jellyfish) rates(s *stage) []float64 {
	var out []float64
	for at := range s.variants {
		v := &s.variants[at]
		all := s.capacity(v, s.budget/2)
		for g := range s.groups {
			best := v.bestRate(g, s.budget/2)
			for b := 1; b <= len(v.latency[g]); b++ {
				if v.latency[g][b-1] <= s.budget/2 {
					out = append(out, v.rate(g, b)/best*all/j.headroom())
				}
			}
		}
	}
	overload := s.capacity(&s.variants[s.fastest()], anyTime)
	if len(out) > 0 {
		overload = max(overload, 1.05*slices.Max(out))
	}
	return append(out, overload)
}

// roundingMargin forgives rounding errors where a rate is compared with one that was computed from it.
const roundingMargin = 1 - 1e-12

func (j Jellyfish) choose(s *stage, rate float64) choice {
	for at := range s.variants {
		v := &s.variants[at]
		all := s.capacity(v, s.budget/2)
		if all < roundingMargin*j.headroom()*rate {
			continue
		}
		c := choice{variant: at, promise: plan.Promise{Accuracy: v.accuracy, Violation: -1, Utilization: rate / all}}
		// Each worker must reach the same part of its best rate as the whole fleet of its own.
		c.limits = v.largestBatches(s.budget/2, roundingMargin*j.headroom()*rate/all)
		return c
	}
	at := s.fastest()
	v := &s.variants[at]
	return choice{
		variant: at, limits: v.ownLimits(), promise: plan.Promise{
			Accuracy: v.accuracy, Violation: -1, Utilization: min(1, rate/s.capacity(v, anyTime)),
		},
	}
}

// largestBatches returns, by group, the largest batch that takes at most within and has at least the given part of the
// highest rate of such batches; at least 1.
func (v *variant) largestBatches(within time.Duration, part float64) []int {
	out := make([]int, len(v.latency))
	for g := range v.latency {
		out[g] = 1
		least := part * v.bestRate(g, within)
		for b := 1; b <= len(v.latency[g]); b++ {
			if v.latency[g][b-1] <= within && v.rate(g, b) >= least {
				out[g] = b
			}
		}
	}
	return out
}
