package tensor

import "math"

// Length says what the length of a query is: the product of some dimensions of an input, such as the tokens of a text
// or the pixels of a picture.
type Length struct {
	Input string
	Axes  []int // dimensions of the input, its items included where it has some
}

// Of returns the length of a query. It is 0, which stands for an unknown one, where l is nil or the inputs lack it.
func (l *Length) Of(inputs []Tensor) int32 {
	if l == nil {
		return 0
	}
	for k := range inputs {
		if t := &inputs[k]; t.Name == l.Input {
			return l.in(t.Shape)
		}
	}
	return 0
}

func (l *Length) in(shape []int64) int32 {
	n := int64(1)
	for _, d := range l.Axes {
		if d >= len(shape) || shape[d] < 1 {
			return 0
		}
		if n *= min(shape[d], math.MaxInt32); n > math.MaxInt32 {
			return math.MaxInt32
		}
	}
	return int32(n)
}
