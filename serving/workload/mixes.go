package workload

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// Mix implements Sizes.
func (c ConstantSize) Mix() serving.Mix {
	return serving.Mix{Sizes: []int32{int32(c)}, Shares: []float64{1}}
}

// Mix implements Sizes.
func (u UniformSize) Mix() serving.Mix {
	weights := make([]float64, u.Max-u.Min+1)
	for i := range weights {
		weights[i] = 1
	}
	return mixOfWeights(u.Min, weights)
}

// Mix implements Sizes.
func (l *Lognormal) Mix() serving.Mix {
	var weights []float64
	above := 1.0 // P(X > k-1)
	for k := int32(1); k < l.max && above >= negligible; k++ {
		next := l.exceeds(k)
		weights = append(weights, above-next)
		above = next
	}
	return mixOfWeights(1, append(weights, above))
}

// Mix implements Sizes.
func (h *Histogram) Mix() serving.Mix { return h.mix }

// negligible is a probability below which a size counts as impossible.
const negligible = 1e-15

// mixOfWeights returns the mix of the sizes first, first+1 and so on with the given weights.
func mixOfWeights(first int32, weights []float64) (m serving.Mix) {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	for i, w := range weights {
		if w > negligible*total {
			m.Sizes, m.Shares = append(m.Sizes, first+int32(i)), append(m.Shares, w/total)
		}
	}
	return m
}

// FromMix returns sizes drawn from a mix. The empty mix means one item. It returns NewHistogram's errors.
func FromMix(m serving.Mix) (*Histogram, error) {
	if len(m.Sizes) == 0 {
		return NewHistogram([]int32{1}, []float64{1})
	}
	return NewHistogram(m.Sizes, m.Shares)
}

// Blend returns the mix of queries that come from several mixes in proportion to weights. Weights must be finite, not
// negative and not all 0.
func Blend(mixes []serving.Mix, weights []float64) (serving.Mix, error) {
	if len(mixes) == 0 || len(mixes) != len(weights) {
		return serving.Mix{}, fmt.Errorf("%d parts with %d weights, want equally many, at least 1", len(mixes),
			len(weights))
	}
	by := make(map[int32]float64)
	total := 0.0
	for i := range mixes {
		if !(weights[i] >= 0) || math.IsInf(weights[i], 0) {
			return serving.Mix{}, fmt.Errorf("[%d]: weight is %v, want a finite number >= 0", i, weights[i])
		}
		total += weights[i]
		for c := range mixes[i].Classes() {
			items, share := mixes[i].Class(c)
			by[int32(items)] += weights[i] * share
		}
	}
	if !(total > 0) || math.IsInf(total, 0) {
		return serving.Mix{}, fmt.Errorf("weights add up to %v, want a finite number above 0", total)
	}
	return mixBySize(by, total), nil
}

// RoundUp returns m with sizes rounded up to multiples of to, which must be at least 1. It is for profiles that have
// only these sizes.
func RoundUp(m serving.Mix, to int32) serving.Mix {
	by := make(map[int32]float64)
	for c := range m.Classes() {
		items, share := m.Class(c)
		by[(int32(items)+to-1)/to*to] += share
	}
	out := mixBySize(by, 1)
	out.Count = m.Count
	return out
}

// mixBySize returns the mix of weights by size, which add up to total.
func mixBySize(by map[int32]float64, total float64) (m serving.Mix) {
	for size, w := range by {
		if w > 0 {
			m.Sizes = append(m.Sizes, size)
		}
	}
	slices.Sort(m.Sizes)
	for _, size := range m.Sizes {
		m.Shares = append(m.Shares, by[size]/total)
	}
	return m
}

// NewGaussian returns sizes drawn as N(mean, deviation), rounded to the nearest whole number and drawn again until they
// lie in [least, most]. Errors name the parameter that is out of range.
func NewGaussian(mean, deviation float64, least, most int32) (*Histogram, error) {
	if math.IsNaN(mean) || math.Abs(mean) > MaxItems {
		return nil, fmt.Errorf("mean: is %v, want a number in [-%d, %d]", mean, MaxItems, MaxItems)
	}
	if !(deviation > 0 && deviation <= MaxItems) {
		return nil, fmt.Errorf("deviation: is %v, want a number in (0, %d]", deviation, MaxItems)
	}
	if least < 1 || most < least || most > MaxItems {
		return nil, fmt.Errorf("min and max: are %d and %d, want 1 <= min <= max <= %d", least, most, MaxItems)
	}
	weights := make([]float64, most-least+1)
	sum := 0.0
	for i := range weights {
		x := float64(least) + float64(i) - mean
		// P(a < N < b), computed from the tail in which nothing cancels.
		a, b := x-0.5, x+0.5
		if x < 0 {
			a, b = -b, -a
		}
		weights[i] = (math.Erfc(a/(deviation*math.Sqrt2)) - math.Erfc(b/(deviation*math.Sqrt2))) / 2
		sum += weights[i]
	}
	if sum < 1e-9 {
		return nil, errors.New("min and max: practically nothing that is drawn lies between them")
	}
	return FromMix(mixOfWeights(least, weights))
}
