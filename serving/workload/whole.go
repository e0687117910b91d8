package workload

import (
	"math"
	"math/rand/v2"
	"sort"

	"github.com/sluice-serving/sluice/serving"
)

// WholeMilliseconds is Times with whole milliseconds between them, Poisson-distributed. The published load generators
// of DeepRecSys, Ribbon and Kairos draw them where their papers say Poisson process. The variance of a gap is its mean,
// in ms. At 10 ms, arrivals are far smoother than a Poisson process, whose gaps have a variance of 100 ms^2. Far below
// 1 ms, many queries come at once.
type WholeMilliseconds struct {
	rate *Rate
	r    *rand.Rand
	last serving.Time
	done bool
	gaps poissonTable
}

// NewWholeMilliseconds returns arrival times at a rate, with random numbers from r. The mean of a gap is the time in
// which one more query is expected. Every gap takes one random number and becomes shorter as the rate grows. So one
// seed gives the same load at every rate, stretched.
func NewWholeMilliseconds(rate *Rate, r *rand.Rand) *WholeMilliseconds {
	return &WholeMilliseconds{rate: rate, r: r}
}

// NextTime implements Times. It returns false when no further arrival is expected within a year.
func (w *WholeMilliseconds) NextTime() (serving.Time, bool) {
	if w.done {
		return 0, false
	}
	s, _ := w.rate.inverse(w.rate.Expected(w.last)+1, w.rate.piece(w.rate.at, w.last.Seconds()))
	if !(s*1e9 <= maxTime) {
		w.done = true
		return 0, false
	}
	w.gaps.prepare(max(0, s*1e9-float64(w.last)) / 1e6)
	w.last += serving.Time(w.gaps.at(w.r.Float64())) * 1e6
	return w.last, true
}

// poissonTable inverts a Poisson distribution by search in its cumulative probabilities.
type poissonTable struct {
	mean  float64
	first int       // first value of the table
	below []float64 // P(X <= first+i)
}

// prepare fills the table, unless it is filled for almost the same mean.
func (p *poissonTable) prepare(mean float64) {
	if p.below != nil && math.Abs(mean-p.mean) <= 1e-6*p.mean {
		return
	}
	// From the mode in both directions, until probabilities relative to the mode's are below the precision of floats.
	const least = 1e-17
	mode := math.Floor(mean)
	p.mean, p.first, p.below = mean, int(mode), p.below[:0]
	for k, x := mode, 1.0; k > 0; k-- {
		if x *= k / mean; x < least {
			break
		}
		p.first--
	}
	x := 1.0
	for k := mode; k > float64(p.first); k-- {
		x *= k / mean
	}
	sum := 0.0
	for k := float64(p.first); ; {
		sum += x
		p.below = append(p.below, sum)
		k++
		if x *= mean / k; k > mode && x < least {
			break
		}
	}
	for i := range p.below {
		p.below[i] /= sum
	}
}

// at returns the value at a cumulative probability u in [0, 1).
func (p *poissonTable) at(u float64) int {
	return p.first + min(sort.Search(len(p.below), func(i int) bool { return p.below[i] > u }), len(p.below)-1)
}
