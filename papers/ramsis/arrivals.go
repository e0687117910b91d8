package ramsis

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Arrivals is the distribution PF(k, T) of §3.1.1: how many queries come in how much time.
type Arrivals interface {
	// LogCount returns the logarithm of the probability of k >= 0 arrivals within t seconds from any moment; -Inf for
	// probability 0.
	LogCount(k int, t float64) float64
	// LogAfter is LogCount for t seconds that begin just after an arrival. The paper assumes that this makes no
	// difference (independent increments, §4.4.2), but for gaps other than Poisson's it does.
	LogAfter(k int, t float64) float64
	// Rate returns the mean rate in queries/s.
	Rate() float64
	// String identifies the distribution: equal strings mean equal distributions.
	String() string
}

// Poisson is Poisson arrivals at a rate in queries/s.
type Poisson float64

// LogCount implements Arrivals.
func (p Poisson) LogCount(k int, t float64) float64 {
	x := float64(p) * t
	if x <= 0 {
		if k == 0 {
			return 0
		}
		return math.Inf(-1)
	}
	return float64(k)*math.Log(x) - x - logFactorial(k)
}

// LogAfter implements Arrivals: an arrival says nothing about the next.
func (p Poisson) LogAfter(k int, t float64) float64 { return p.LogCount(k, t) }

// Rate implements Arrivals.
func (p Poisson) Rate() float64 { return float64(p) }

func (p Poisson) String() string { return fmt.Sprintf("poisson(%v/s)", float64(p)) }

// Gamma is arrivals with independent, gamma-distributed gaps. Shape 1 is Poisson, a whole shape is Erlang, a small one
// comes in bursts.
type Gamma struct {
	PerSecond float64 // mean rate in queries/s
	Shape     float64 // > 0
}

// gapsEnded returns the probability that so many gaps have ended within x, in units of the gamma distribution's scale.
func (g Gamma) gapsEnded(gaps int, x float64) float64 {
	switch {
	case gaps == 0:
		return 1
	case x <= 0:
		return 0
	}
	return ended(float64(gaps)*g.Shape, x)
}

// certain is the exponent of a probability that is lost beside 1.
const certain = -37

// ended is the distribution function of a gamma variable with shape a and scale 1. Most of a policy's arrivals are
// certain, which Chernoff's bound tells faster than the function itself.
func ended(a, x float64) float64 {
	if x > a && a-x+a*math.Log(x/a) < certain {
		return 1
	}
	return mathext.GammaIncReg(a, x)
}

// LogAfter implements Arrivals: k arrivals have come when the k-th gap has ended and the next has not.
func (g Gamma) LogAfter(k int, t float64) float64 {
	x := g.PerSecond * g.Shape * t
	return math.Log(max(g.gapsEnded(k, x)-g.gapsEnded(k+1, x), 0))
}

// LogCount implements Arrivals. At any moment the first gap is the remainder of one that has begun before. The
// probability of at least k arrivals is the rate times the integral of that of k-1 arrivals after an arrival (Cox,
// Renewal Theory, 1962, §3.2).
func (g Gamma) LogCount(k int, t float64) float64 {
	x := g.PerSecond * g.Shape * t
	if x <= 0 {
		return Poisson(0).LogCount(k, t)
	}
	less, more := x, g.endedUntil(k+1, x) // of one gap less than k, and of one more
	if k == 0 {
		less = x + g.Shape // at least no arrival is certain
	} else if k > 1 {
		less = g.endedUntil(k-1, x)
	}
	return math.Log(max((less-2*g.endedUntil(k, x)+more)/g.Shape, 0))
}

// endedUntil is the integral of gapsEnded over 0 to x, by parts.
func (g Gamma) endedUntil(gaps int, x float64) float64 {
	if gaps == 0 {
		return x
	}
	a := float64(gaps) * g.Shape
	l, _ := math.Lgamma(a)
	return (x-a)*ended(a, x) + math.Exp(a*math.Log(x)-x-l)
}

// Rate implements Arrivals.
func (g Gamma) Rate() float64 { return g.PerSecond }

func (g Gamma) String() string { return fmt.Sprintf("gamma(%v/s, shape %v)", g.PerSecond, g.Shape) }

var factorials = func() (out [8192]float64) {
	for k := 2; k < len(out); k++ {
		out[k] = out[k-1] + math.Log(float64(k))
	}
	return out
}()

func logFactorial(k int) float64 {
	if k < len(factorials) {
		return factorials[k]
	}
	l, _ := math.Lgamma(float64(k) + 1)
	return l
}
