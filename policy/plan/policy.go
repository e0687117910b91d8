package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Policies are the policies for one kind of instance of a stage, or of central queue: one for each of several arrival
// rates (RAMSIS §3.1.3).
type Policies struct {
	Stage      serving.StageID
	DeviceType serving.DeviceTypeID // serving.None for any
	// ByRate ascends by Rate and is not empty.
	ByRate []Policy
	// Dispersion is how unevenly queries arrive by the planner's assumption (monitor.View.Dispersion), where it follows
	// what is seen; 0 where it does not.
	Dispersion float64 `json:",omitempty"`
}

// Policy says what to run in every state of a queue. The state is how many queries wait and how much time is left to
// the first deadline. A policy is made in advance for one arrival rate (RAMSIS §4).
type Policy struct {
	Rate float64 // arrivals at the whole stage, queries/s
	// Slacks ascend from 0. The slack of a queue is the largest entry that does not exceed the time left.
	Slacks []time.Duration
	// Choices are by (queries-1)*len(Slacks) + slack, for queues of 1 query up to the longest that has choices of its
	// own. A longer queue counts as the longest one without slack (§4.2.3).
	Choices []Choice
	Promise Promise
}

// Choice is what to run: a batch of the queries with the earliest deadlines, on a variant.
type Choice struct {
	Variant serving.VariantID
	Queries int32
}

// Promise is the accuracy and the share of late queries that a policy is expected to lead to (RAMSIS §5.1).
type Promise struct {
	Accuracy  float64 // mean over queries in time, a lower bound
	Violation float64 // share of late queries, an upper bound; negative when not promised
	// MedianAccuracy is reached by half of the queries in time, Worst99Accuracy by 99 % of them.
	MedianAccuracy, Worst99Accuracy float64
	Utilization                     float64 // share of the time in which a worker is busy
}

// At returns the policy for an arrival rate in queries/s: the one for the lowest rate that is no lower, else the last
// (§3.2.2). It points into p. p.ByRate must not be empty.
func (p *Policies) At(rate float64) *Policy {
	at, _ := slices.BinarySearchFunc(p.ByRate, rate, func(p Policy, rate float64) int {
		return cmp.Compare(p.Rate, rate)
	})
	return &p.ByRate[min(at, len(p.ByRate)-1)]
}

// Covers reports whether some policy was made for the given rate in queries/s or a higher one.
func (p *Policies) Covers(rate float64) bool {
	return len(p.ByRate) > 0 && p.ByRate[len(p.ByRate)-1].Rate >= rate
}

const (
	// mostUneven and its inverse bound the dispersions that policies are made for.
	mostUneven = 64
	// patternChange is the factor on the expected dispersion from which on arrivals have another pattern. It is more
	// than half a step of Pattern, so that a plan that is made then expects another one.
	patternChange = 1.5
)

// Pattern returns the dispersion that policies are made for where one was seen: the power of two that is next to it.
func Pattern(seen float64) float64 { return math.Exp2(math.Round(math.Log2(withinPatterns(seen)))) }

func withinPatterns(seen float64) float64 { return min(max(seen, 1./mostUneven), mostUneven) }

// Expects reports whether the policies were made for arrivals about as uneven as was seen, or follow no pattern.
func (p *Policies) Expects(seen float64) bool {
	x := withinPatterns(seen) / p.Dispersion
	return p.Dispersion == 0 || x < patternChange && x > 1/patternChange
}

// Choice returns what to run while so many queries (>= 1) wait and so much time is left to the first deadline. It does
// not allocate.
func (p *Policy) Choice(queries int, left time.Duration) Choice {
	s := len(p.Slacks)
	if longest := len(p.Choices) / s; queries > longest {
		return p.Choices[(longest-1)*s]
	}
	lo, hi := 0, s // Slacks[lo] <= left, or lo is 0
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; p.Slacks[mid] <= left {
			lo = mid
		} else {
			hi = mid
		}
	}
	return p.Choices[(queries-1)*s+lo]
}

// PoliciesOf returns the policies for instances of a device type at a stage, or nil. The result points into p.
func (p *Plan) PoliciesOf(s serving.StageID, d serving.DeviceTypeID) *Policies {
	for i := range p.Policies {
		if x := &p.Policies[i]; x.Stage == s && (x.DeviceType == d || x.DeviceType == serving.None) {
			return x
		}
	}
	return nil
}

func (p *Policies) validate(spec *serving.Spec) error {
	if p.Stage < 0 || int(p.Stage) >= len(spec.Stages) {
		return fmt.Errorf("stage %d does not exist", p.Stage)
	}
	if p.DeviceType != serving.None && (p.DeviceType < 0 || int(p.DeviceType) >= len(spec.DeviceTypes)) {
		return fmt.Errorf("device type %d does not exist", p.DeviceType)
	}
	if len(p.ByRate) == 0 {
		return fmt.Errorf("no policy for stage %q", spec.Stages[p.Stage].Name)
	}
	for i := range p.ByRate {
		x := &p.ByRate[i]
		if i > 0 && !(x.Rate > p.ByRate[i-1].Rate) {
			return fmt.Errorf("policy %d is for %v queries/s, want more than the one before", i, x.Rate)
		}
		if len(x.Slacks) == 0 || x.Slacks[0] != 0 || !slices.IsSorted(x.Slacks) || len(x.Choices) == 0 ||
			len(x.Choices)%len(x.Slacks) != 0 {
			return fmt.Errorf("policy for %v queries/s: %d slacks (want them to ascend from 0) and %d choices", x.Rate,
				len(x.Slacks), len(x.Choices))
		}
		for k, c := range x.Choices {
			if c.Variant < 0 || int(c.Variant) >= len(spec.Variants) || spec.Variants[c.Variant].Stage != p.Stage {
				return fmt.Errorf("policy for %v queries/s: variant %d does not belong to stage %q", x.Rate, c.Variant,
					spec.Stages[p.Stage].Name)
			}
			if c.Queries < 1 || int(c.Queries) > k/len(x.Slacks)+1 {
				return fmt.Errorf("policy for %v queries/s: takes %d of %d queries", x.Rate, c.Queries,
					k/len(x.Slacks)+1)
			}
		}
	}
	return nil
}
