// Package student bounds how far the mean of a sample is from the mean of its distribution (Student, "The probable
// error of a mean", Biometrika 6, 1908).
package student

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Margin returns the mean of independent values and a margin: the mean of their distribution is off by more than the
// margin to one given side with probability chance only, if the values are normal. chance is in (0, 1). With fewer than
// two values the margin is +Inf. x is not changed.
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
