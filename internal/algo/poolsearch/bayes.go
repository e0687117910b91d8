package poolsearch

import (
	"math"
	"math/rand/v2"
)

// Surrogate holds the parameters of Bayesian optimisation.
type Surrogate struct {
	Starts int // random points before the model is asked; 0 means 2
	// Margin is by how much a point must be expected to exceed the best value, in the unit of values. Ribbon uses 0.1
	// for values between 0 and 1.
	Margin float64
	// Lengths are the length scales that the model may have, in machines. The search uses the one under which the
	// values so far are most likely. Nil means 1/2, 1, 2, .., 32.
	Lengths []float64
}

// bayes is Ribbon's search (Li et al., SC 2021): a Gaussian process over integer points, and next the point with the
// largest expected improvement. Ribbon's library finds the length scale by gradient. A grid has no local optima and
// needs no tolerance, and the model barely moves between powers of two.
type bayes struct {
	space  *Space
	with   Surrogate
	random *shuffled
	values int // number of known values
	// the first value; all are counted from it, so that large values do not cancel small differences
	origin    float64
	sum       float64
	squares   float64
	models    []*gaussianProcess
	distances []int // squared distances to a point, by point
}

// Bayes returns the search by Bayesian optimisation. Each evaluation takes O(points * evaluations) time.
func Bayes(space *Space, with Surrogate, rng *rand.Rand) *Search {
	if with.Starts <= 0 {
		with.Starts = 2
	}
	if len(with.Lengths) == 0 {
		with.Lengths = []float64{0.5, 1, 2, 4, 8, 16, 32}
	}
	b := &bayes{space: space, with: with, random: newShuffled(space, rng), distances: make([]int, len(space.points))}
	farthest := diameter(space.points)
	for _, l := range with.Lengths {
		b.models = append(b.models, newGaussianProcess(len(space.points), farthest, l))
	}
	return newSearch(space, b)
}

func (b *bayes) observe(point int) {
	v, ok := b.space.Value(point)
	if !ok {
		return
	}
	if b.values++; b.values == 1 {
		b.origin = v
	}
	v -= b.origin
	b.sum += v
	b.squares += v * v
	for i, p := range b.space.points {
		b.distances[i] = squaredDistance(p, b.space.points[point])
	}
	for _, m := range b.models {
		m.observe(point, v, b.distances)
	}
}

func (b *bayes) next() int {
	if b.values < b.with.Starts {
		return b.random.next()
	}
	mean, deviation := b.moments()
	model := b.models[0]
	for _, m := range b.models[1:] {
		if m.likelihood(mean, deviation) > model.likelihood(mean, deviation) {
			model = m
		}
	}
	_, best, _ := b.space.Best()
	target := best - b.origin + b.with.Margin
	out, most, nearest := -1, 0.0, 0.0
	for i := range b.space.points {
		if !b.space.Open(i) {
			continue
		}
		m, d := model.predict(i, mean, deviation)
		gain, z := expectedImprovement(m-target, d), (m-target)/max(d, math.SmallestNonzeroFloat64)
		// Where all expectations underflow, the most probable improvement decides.
		if out < 0 || gain > most || gain == most && z > nearest {
			out, most, nearest = i, gain, z
		}
	}
	return out
}

// moments returns the mean and deviation by which the values are normalised before the process models them.
func (b *bayes) moments() (mean, deviation float64) {
	n := float64(b.values)
	mean = b.sum / n
	deviation = math.Sqrt(max(0, b.squares/n-mean*mean))
	if deviation == 0 { // all values are equal
		deviation = 1
	}
	return mean, deviation
}

// expectedImprovement returns the expected positive part of a normal variable (Jones, Schonlau and Welch 1998, Eq. 15).
func expectedImprovement(mean, deviation float64) float64 {
	if deviation <= 0 {
		return max(0, mean)
	}
	z := mean / deviation
	return mean*0.5*math.Erfc(-z/math.Sqrt2) + deviation*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)
}

func squaredDistance(a, b []int) int {
	sum := 0
	for c := range a {
		sum += (a[c] - b[c]) * (a[c] - b[c])
	}
	return sum
}

// diameter returns the squared diagonal of the box around all points.
func diameter(points [][]int) int {
	if len(points) == 0 {
		return 0
	}
	low, high := append([]int(nil), points[0]...), append([]int(nil), points[0]...)
	for _, p := range points {
		for c, x := range p {
			low[c], high[c] = min(low[c], x), max(high[c], x)
		}
	}
	return squaredDistance(low, high)
}
