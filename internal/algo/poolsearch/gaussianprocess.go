package poolsearch

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// noise is the measurement variance that is assumed, as a share of the variance of values. It keeps the factor of
// nearly equal points positive definite. Ribbon's library assumes the same.
const noise = 1e-6

// gaussianProcess is a Gaussian process with a Matérn kernel of smoothness 5/2 over all points of a space (Rasmussen
// and Williams, Gaussian Processes for Machine Learning, 2006, Eqs. 2.25, 2.26, 2.30 and 4.17).
//
// It holds the Cholesky factor of the kernel matrix of the observations, extended to all points: rows[k] is the k-th
// row of L^-1 K, whose entry at a point observed later is that point's entry in L. An observation adds one row.
// Predictions for all points are kept as sums.
type gaussianProcess struct {
	kernel   []float64   // by squared distance
	rows     [][]float64 // by observation, then point
	variance []float64   // that the observations leave, by point
	// values and ones are the predictions, by point, from the observed values and from ones instead of them.
	// Predictions are linear in the values, so these two give the prediction for the values less any mean.
	values, ones []float64
	// vv, vo and oo are the products of L^-1 times the values and L^-1 times ones.
	vv, vo, oo float64
	logDet     float64
}

func newGaussianProcess(points, farthest int, length float64) *gaussianProcess {
	p := &gaussianProcess{
		kernel: make([]float64, farthest+1), variance: make([]float64, points),
		values: make([]float64, points), ones: make([]float64, points),
	}
	for d := range p.kernel {
		r := math.Sqrt(5*float64(d)) / length
		p.kernel[d] = (1 + r + r*r/3) * math.Exp(-r)
	}
	for i := range p.variance {
		p.variance[i] = 1
	}
	return p
}

// observe adds the value of a point; distances are the squared distances of all points from it.
func (p *gaussianProcess) observe(point int, value float64, away []int) {
	row := make([]float64, len(away))
	for i, d := range away {
		row[i] = p.kernel[d]
	}
	for _, r := range p.rows {
		floats.AddScaled(row, -r[point], r)
	}
	pivot := math.Sqrt(max(p.variance[point], 0) + noise)
	floats.Scale(1/pivot, row)
	v, o := (value-p.values[point])/pivot, (1-p.ones[point])/pivot
	floats.AddScaled(p.values, v, row)
	floats.AddScaled(p.ones, o, row)
	for i, x := range row {
		p.variance[i] -= x * x
	}
	p.vv += v * v
	p.vo += v * o
	p.oo += o * o
	p.logDet += 2 * math.Log(pivot)
	p.rows = append(p.rows, row)
}

// predict returns the mean and the deviation of a point's value, if the values are the given mean plus deviation times
// the process.
func (p *gaussianProcess) predict(point int, mean, deviation float64) (m, d float64) {
	return mean + p.values[point] - mean*p.ones[point], deviation * math.Sqrt(max(p.variance[point], 0))
}

// likelihood returns the logarithm of the density of the values so far, up to a term that does not depend on the
// kernel.
func (p *gaussianProcess) likelihood(mean, deviation float64) float64 {
	fit := (p.vv - 2*mean*p.vo + mean*mean*p.oo) / (deviation * deviation)
	return -(fit + p.logDet) / 2
}
