package reproduce

// Mean returns the arithmetic mean of values, NaN when there are none.
func Mean(values []float64) float64 { return Sum(values) / float64(len(values)) }

// Sum returns the sum of values, added in their order.
func Sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// Ratios returns a[i]/b[i] for every i of a. b must be at least as long as a.
func Ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

// Scaled returns a new slice with every value multiplied by factor.
func Scaled(values []float64, factor float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = factor * v
	}
	return out
}

// Each returns one number for each result of a task, by seed. The task must have run and its results must be of type T.
func Each[T any](t *Task, number func(result T) float64) []float64 {
	out := make([]float64, len(t.Results))
	for i, r := range t.Results {
		out[i] = number(r.(T))
	}
	return out
}
