package reproduce

// Values are numbers that tasks will give, one for each seed. They are called when the tasks have run.
type Values func() []float64

// Const returns numbers that are known beforehand.
func Const(v ...float64) Values { return func() []float64 { return v } }

// Map applies f to every number.
func (n Values) Map(f func(float64) float64) Values {
	return func() []float64 {
		v := n()
		out := make([]float64, len(v))
		for i := range v {
			out[i] = f(v[i])
		}
		return out
	}
}

// With applies f to every number and that of the same seed in m.
func (n Values) With(m Values, f func(a, b float64) float64) Values {
	return func() []float64 {
		a, b := n(), m()
		out := make([]float64, len(a))
		for i := range a {
			out[i] = f(a[i], b[i])
		}
		return out
	}
}

// Times multiplies every number by a factor.
func (n Values) Times(factor float64) Values {
	return n.Map(func(v float64) float64 { return factor * v })
}

// Over divides every number by that of the same seed in base.
func (n Values) Over(base Values) Values {
	return n.With(base, func(a, b float64) float64 { return a / b })
}

// Where returns the numbers where there are others, none where those have none.
func (n Values) Where(others Values) Values {
	return func() []float64 {
		if len(others()) == 0 {
			return nil
		}
		return n()
	}
}

// First returns the number of the first seed alone.
func (n Values) First() Values { return func() []float64 { return n()[:1] } }

// Mean returns the mean over the seeds.
func (n Values) Mean() float64 { return Mean(n()) }

// MeanOf returns the mean over a list, by seed.
func MeanOf(list ...Values) Values {
	return func() []float64 {
		var out []float64
		for _, n := range list {
			v := n()
			if out == nil {
				out = make([]float64, len(v))
			}
			for i := range v {
				out[i] += v[i] / float64(len(list))
			}
		}
		return out
	}
}

// Mean returns the arithmetic mean of values, NaN when there are none.
func Mean(values []float64) float64 { return Sum(values) / float64(len(values)) }

// Sum returns the sum of values, added in their order.
func Sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// Scaled returns a new slice with every value multiplied by factor.
func Scaled(values []float64, factor float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = factor * v
	}
	return out
}
