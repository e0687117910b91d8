package workload

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/sluice-serving/sluice/serving"
)

// MaxItems is the most items of a query.
const MaxItems = 1 << 20

// Sizes draws the number of items of a query, at least 1. All of its randomness comes from r.
type Sizes interface {
	Draw(r *rand.Rand) int32
	// Mean returns the expected number of items.
	Mean() float64
	// Mix returns the distribution without sizes of negligible probability. The caller must not change it.
	Mix() serving.Mix
}

// ConstantSize is the same number of items for every query.
type ConstantSize int32

// Draw implements Sizes.
func (c ConstantSize) Draw(*rand.Rand) int32 { return int32(c) }

// Mean implements Sizes.
func (c ConstantSize) Mean() float64 { return float64(c) }

// UniformSize draws whole numbers from Min to Max with equal probability. It needs 1 <= Min <= Max.
type UniformSize struct{ Min, Max int32 }

// Draw implements Sizes.
func (u UniformSize) Draw(r *rand.Rand) int32 { return u.Min + r.Int32N(u.Max-u.Min+1) }

// Mean implements Sizes.
func (u UniformSize) Mean() float64 { return (float64(u.Min) + float64(u.Max)) / 2 }

// Lognormal draws exp(N(mu, sigma)), rounded to the nearest whole number and clamped to [1, max].
type Lognormal struct {
	mu, sigma float64
	max       int32
	mean      float64
}

// NewLognormal returns sizes whose logarithm has mean mu and standard deviation sigma, clamped to [1, maximum]. It
// returns an error for parameters out of range.
func NewLognormal(mu, sigma float64, maximum int32) (*Lognormal, error) {
	if math.IsNaN(mu) || math.Abs(mu) > 20 {
		return nil, fmt.Errorf("mu is %v, want a number in [-20, 20]", mu)
	}
	if !(sigma >= 0 && sigma <= 10) {
		return nil, fmt.Errorf("sigma is %v, want a number in [0, 10]", sigma)
	}
	if maximum < 1 || maximum > MaxItems {
		return nil, fmt.Errorf("max is %d, want a number in [1, %d]", maximum, MaxItems)
	}
	l := &Lognormal{mu: mu, sigma: sigma, max: maximum}
	// E[X] of a whole number X >= 1 is 1 + the sum of P(X > k) over k >= 1.
	l.mean = 1
	for k := int32(1); k < maximum; k++ {
		p := l.exceeds(k)
		if p < negligible {
			break
		}
		l.mean += p
	}
	return l, nil
}

// exceeds returns the probability of more than k items, for k < max: that exp(N) reaches k + 1/2.
func (l *Lognormal) exceeds(k int32) float64 {
	x := math.Log(float64(k)+0.5) - l.mu
	if l.sigma > 0 {
		return 0.5 * math.Erfc(x/(l.sigma*math.Sqrt2))
	}
	if x <= 0 {
		return 1
	}
	return 0
}

// Draw implements Sizes.
func (l *Lognormal) Draw(r *rand.Rand) int32 {
	x := math.Round(math.Exp(l.mu + l.sigma*r.NormFloat64()))
	if x >= float64(l.max) {
		return l.max
	}
	return max(1, int32(x))
}

// Mean implements Sizes.
func (l *Lognormal) Mean() float64 { return l.mean }

// Histogram draws sizes with given weights in constant time, by Walker's alias method in Vose's form.
type Histogram struct {
	items []int32
	keep  []float64
	alias []int32
	mean  float64
	mix   serving.Mix
}

// NewHistogram returns sizes drawn in proportion to their weights, which must be finite, not negative and not all 0. It
// does not keep the slices.
func NewHistogram(items []int32, weights []float64) (*Histogram, error) {
	if len(items) == 0 || len(items) != len(weights) || len(items) > MaxItems {
		return nil, fmt.Errorf("%d sizes with %d weights, want equally many, between 1 and %d", len(items),
			len(weights), MaxItems)
	}
	total := 0.0
	for i, w := range weights {
		if !(w >= 0) || math.IsInf(w, 0) {
			return nil, fmt.Errorf("[%d]: weight is %v, want a finite number >= 0", i, w)
		}
		if items[i] < 1 || items[i] > MaxItems {
			return nil, fmt.Errorf("[%d]: items is %d, want a number in [1, %d]", i, items[i], MaxItems)
		}
		total += w
	}
	if !(total > 0) || math.IsInf(total, 0) {
		return nil, fmt.Errorf("weights add up to %v, want a finite number above 0", total)
	}
	n := len(items)
	h := &Histogram{items: append([]int32(nil), items...), keep: make([]float64, n), alias: make([]int32, n)}
	var small, large []int32
	by := make(map[int32]float64, n)
	for i, w := range weights {
		by[items[i]] += w
		p := w / total
		h.mean += p * float64(items[i])
		h.keep[i] = p * float64(n)
		h.alias[i] = int32(i)
		if h.keep[i] < 1 {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	h.mix = mixBySize(by, total)
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		h.alias[s] = l
		h.keep[l] -= 1 - h.keep[s]
		if h.keep[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range large {
		h.keep[i] = 1
	}
	for _, i := range small { // left by rounding only
		h.keep[i] = 1
	}
	return h, nil
}

// Draw implements Sizes.
func (h *Histogram) Draw(r *rand.Rand) int32 {
	i := r.IntN(len(h.items))
	if r.Float64() >= h.keep[i] {
		i = int(h.alias[i])
	}
	return h.items[i]
}

// Mean implements Sizes.
func (h *Histogram) Mean() float64 { return h.mean }
