package workload

import (
	"math"
	"math/rand/v2"
	"sort"

	"github.com/sluice-serving/sluice/serving"
)

// WholeMilliseconds yields arrival times with whole milliseconds between them, Poisson-distributed: what the published
// load generators of DeepRecSys, Ribbon and Kairos draw where their papers say Poisson process. The variance of a gap
// is its mean, in ms: at 10 ms arrivals are far smoother than a Poisson process, whose gaps have a variance of 100
// ms^2; far below 1 ms many queries come at once.
type WholeMilliseconds struct {
	rate *Rate
	r    *rand.Rand
	last serving.Time
	done bool
	gaps poissonTable
}

// NewWholeMilliseconds returns arrival times at a rate. The mean of a gap is the time in which the rate, as it goes on,
// brings one more query. Every gap takes one random number, and is the shorter the higher the rate: one seed at two
// rates gives the same load, stretched.
func NewWholeMilliseconds(rate *Rate, r *rand.Rand) *WholeMilliseconds {
	return &WholeMilliseconds{rate: rate, r: r}
}

// NextTime implements Times. It ends when the rate brings no further query, or a year has passed.
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

// poissonTable is the inverse of a Poisson distribution, by search in its cumulative probabilities.
type poissonTable struct {
	mean  float64
	first int       // value that the table begins with
	below []float64 // P(X <= first+i)
}

// prepare fills the table, unless it was filled for practically the same mean.
func (p *poissonTable) prepare(mean float64) {
	if p.below != nil && math.Abs(mean-p.mean) <= 1e-6*p.mean {
		return
	}
	// From the mode in both directions as far as doubles tell the probabilities apart from none, relative to the
	// mode's.
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

// at returns the value for a probability in [0, 1).
func (p *poissonTable) at(u float64) int {
	return p.first + min(sort.Search(len(p.below), func(i int) bool { return p.below[i] > u }), len(p.below)-1)
}
