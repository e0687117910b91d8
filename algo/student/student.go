// Package student says how far the mean of a sample may be from that of its distribution (Student 1908).
package student

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Margin returns the mean of independent values and by how much that of their distribution may differ from it to one
// side, wrong with the given chance. Of fewer than two values nothing can be said: the margin is +Inf.
func Margin(x []float64, chance float64) (mean, margin float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	if len(x) < 2 {
		return mean, math.Inf(1)
	}
	squares := 0.0
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	t := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(1 - chance)
	return mean, t * math.Sqrt(squares/(n-1)/n)
}
