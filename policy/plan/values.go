package plan

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Prices say what a state of all of a stage's workers and its central queue together is worth, for each of several
// arrival rates: what a rule needs that decides for the pool rather than for one worker.
type ValueFunctions struct {
	Stage serving.StageID
	// Workers is how many they were made for; what counts is the rate per worker.
	Workers int
	// ByRate ascends by Rate.
	ByRate []ValueFunction
}

// Price is the worth of a pool's positions at one arrival rate.
//
// The position of a pool is the number of queries that wait and can still be in time, plus those that arrive while the
// pool works off what runs, relative to a pool whose workers are all busy and out of step:
//
//	waiting + Rate * (time left of what runs / workers - Rest)
//
// Above 0 queries have to wait, below 0 workers are idle.
type ValueFunction struct {
	Rate     float64       // queries/s at the whole stage
	Residual time.Duration `json:"Rest"`
	// Gain is the long-run accuracy per query, a late one counting as -Late.
	Gain        float64
	LatePenalty float64 `json:"Late"`
	// Value is by position what is yet to come beyond Gain, in accuracy of one query: entry k is for position
	// (k-Zero)/PerQuery.
	Value    []float64
	Zero     int
	PerQuery float64
	// Promise is what following these values is expected to lead to.
	Promise Promise
}

// At returns the value of a position: between entries on the line between them, below the first that of the first,
// beyond the last falling on as between the last two. It does not allocate.
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

// Between returns the prices made for the rates next to the given one, and how far it is from low to high, in [0, 1].
// Below the first and beyond the last rate both are the same: what no policy can serve in time has no price.
func (p *ValueFunctions) Between(rate float64) (low, high *ValueFunction, part float64) {
	at := sort.Search(len(p.ByRate), func(k int) bool { return p.ByRate[k].Rate >= rate })
	if at == 0 || at == len(p.ByRate) {
		x := &p.ByRate[min(at, len(p.ByRate)-1)]
		return x, x, 0
	}
	low, high = &p.ByRate[at-1], &p.ByRate[at]
	return low, high, (rate - low.Rate) / (high.Rate - low.Rate)
}

// PricesOf returns the prices of a stage, or nil.
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
