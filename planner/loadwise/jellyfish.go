package loadwise

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
)

// Jellyfish is Jellyfish+ (RAMSIS §7, after Jellyfish, RTSS 2022): the most accurate variant whose throughput, summed
// over the workers, exceeds the load, with batches that take at most half the objective, since a query may wait for as
// long as the batch before it runs. When no variant does, the fastest runs whatever waits.
type Jellyfish struct {
	// Headroom is how much more than the load a variant must carry; 0 means 1.05, as in the authors' code.
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

// rates are those at which the choice changes, so that the policies are the rule itself, at every rate; and beyond the
// last one that for overload.
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

// even is the room for rounding where a rate is held against one that was computed from it.
const roundingRoom = 1 - 1e-12

func (j Jellyfish) choose(s *stage, rate float64) choice {
	for at := range s.variants {
		v := &s.variants[at]
		all := s.capacity(v, s.budget/2)
		if all < roundingRoom*j.headroom()*rate {
			continue
		}
		c := choice{variant: at, promise: plan.Promise{Accuracy: v.accuracy, Violation: -1, Utilization: rate / all}}
		// Each worker may fall behind its best by the same part as the whole fleet may.
		c.limits = v.largestBatches(s.budget/2, roundingRoom*j.headroom()*rate/all)
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

// largest are, by group, the largest batches that take at most within and have at least the given part of the highest
// rate of such batches; at least 1.
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
