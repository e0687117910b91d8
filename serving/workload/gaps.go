package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Gaps draws the gaps of a renewal process of rate one: independent non-negative numbers with mean 1. All of their
// randomness comes from r.
type Gaps interface {
	Gap(r *rand.Rand) float64
}

// Poisson draws exponential gaps, whose variance is 1.
type Poisson struct{}

// Gap implements Gaps.
func (Poisson) Gap(r *rand.Rand) float64 { return r.ExpFloat64() }

// Uniform draws equal gaps, whose variance is 0.
type Uniform struct{}

// Gap implements Gaps.
func (Uniform) Gap(*rand.Rand) float64 { return 1 }

// Gamma draws gamma-distributed gaps, whose variance is 1/shape. Shape 1 is Poisson. Shape 0.05 is the very bursty load
// of Proteus §6.4. Large shapes approach Uniform.
type Gamma struct {
	shape  float64
	d, c   float64
	boosts bool
}

// NewGamma returns gamma gaps. It returns an error for a shape outside [0.001, 1e6].
func NewGamma(shape float64) (*Gamma, error) {
	if !(shape >= 1e-3 && shape <= 1e6) {
		return nil, fmt.Errorf("shape is %v, want a number in [0.001, 1e6]", shape)
	}
	g := &Gamma{shape: shape, boosts: shape < 1}
	k := shape
	if g.boosts {
		k++
	}
	g.d = k - 1.0/3
	g.c = 1 / math.Sqrt(9*g.d)
	return g, nil
}

// Gap implements Gaps by the squeeze method of Marsaglia and Tsang (2000), which needs a shape of at least 1. For
// smaller shapes it uses gamma(k) = gamma(k+1) * U^(1/k).
func (g *Gamma) Gap(r *rand.Rand) float64 {
	var v float64
	for {
		x := r.NormFloat64()
		v = 1 + g.c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		u := r.Float64()
		if u < 1-0.0331*x*x*x*x || math.Log(u) < 0.5*x*x+g.d*(1-v+math.Log(v)) {
			break
		}
	}
	y := g.d * v
	if g.boosts {
		y *= math.Exp(-r.ExpFloat64() / g.shape) // -log U is exponential
	}
	return y / g.shape
}
