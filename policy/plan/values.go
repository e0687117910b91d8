package plan

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// ValueFunctions are the value functions of one stage's pool, one for each of several arrival rates. The pool is all
// workers of the stage and its central queue. Rules that decide for the whole pool rather than for one worker need
// them.
type ValueFunctions struct {
	Stage serving.StageID
	// Workers is the size of the pool that they were made for. They hold for pools of other sizes at the same rate per
	// worker.
	Workers int
	// ByRate ascends by Rate and is not empty.
	ByRate []ValueFunction
}

// ValueFunction is the relative value of every position of a pool at one arrival rate: the solution of a semi-Markov
// decision process (Puterman, Markov Decision Processes, 1994, §11.4).
//
// The position of a pool is the number of queries that wait and can still be in time, plus those that arrive while the
// pool works off what runs, relative to a pool whose workers are all busy and out of step:
//
//	waiting + Rate * (time left of what runs / workers - Residual)
//
// Above 0 queries have to wait, below 0 workers are idle.
type ValueFunction struct {
	Rate float64 // queries/s at the whole stage
	// mean time left of a busy worker's batch
	Residual time.Duration `json:"Rest"`
	// Gain is the long-run mean reward per query: its accuracy when it is in time, -LatePenalty when it is late.
	Gain        float64
	LatePenalty float64 `json:"Late"`
	// Value is by position the reward that is still to come beyond Gain, in accuracy of one query. Entry k is for
	// position (k-Zero)/PerQuery.
	Value    []float64
	Zero     int
	PerQuery float64
	// Promise is what a router that follows these values is expected to lead to.
	Promise Promise
}

// At returns the value of position x. It is linear between entries, constant below the first, and continued beyond the
// last with the slope of the last two. It does not allocate.
func (p *ValueFunction) At(x float64) float64 {
	y := x*p.PerQuery + float64(p.Zero)
	last := len(p.Value) - 1
	k := 0
	switch {
	case y <= 0:
		return p.Value[0]
	case y >= float64(last):
		k = last - 1
	default:
		k = int(y)
	}
	return p.Value[k] + (y-float64(k))*(p.Value[k+1]-p.Value[k])
}

// Between returns the value functions made for the rates next to the given one, in queries/s, and how far the rate is
// from low to high, in [0, 1]. Both are the same below the first and beyond the last rate: there is no value function
// for a rate that no policy can serve in time. The results point into p.
func (p *ValueFunctions) Between(rate float64) (low, high *ValueFunction, part float64) {
	at := sort.Search(len(p.ByRate), func(k int) bool { return p.ByRate[k].Rate >= rate })
	if at == 0 || at == len(p.ByRate) {
		x := &p.ByRate[min(at, len(p.ByRate)-1)]
		return x, x, 0
	}
	low, high = &p.ByRate[at-1], &p.ByRate[at]
	return low, high, (rate - low.Rate) / (high.Rate - low.Rate)
}

// ValuesOf returns the value functions of a stage, or nil. The result points into p.
func (p *Plan) ValuesOf(s serving.StageID) *ValueFunctions {
	for i := range p.Values {
		if p.Values[i].Stage == s {
			return &p.Values[i]
		}
	}
	return nil
}

func (p *ValueFunctions) validate(spec *serving.Spec) error {
	if p.Stage < 0 || int(p.Stage) >= len(spec.Stages) {
		return fmt.Errorf("stage %d does not exist", p.Stage)
	}
	if p.Workers < 1 || len(p.ByRate) == 0 {
		return fmt.Errorf("%d prices for %d workers of stage %q, want at least one of each", len(p.ByRate), p.Workers,
			spec.Stages[p.Stage].Name)
	}
	for i := range p.ByRate {
		x := &p.ByRate[i]
		if !(x.Rate > 0) || i > 0 && !(x.Rate > p.ByRate[i-1].Rate) {
			return fmt.Errorf("price %d is for %v queries/s, want more than 0 and than the one before", i, x.Rate)
		}
		if len(x.Value) < 2 || x.Zero < 0 || x.Zero >= len(x.Value) || !(x.PerQuery > 0) || x.Residual <= 0 {
			return fmt.Errorf("price for %v queries/s: %d values, position 0 at %d, %v for each query, time left %v",
				x.Rate, len(x.Value), x.Zero, x.PerQuery, x.Residual)
		}
		for _, v := range x.Value {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("price for %v queries/s: a value is %v", x.Rate, v)
			}
		}
	}
	return nil
}
