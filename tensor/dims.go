package tensor

import "strconv"

// Dims is a shape that prints as clients write it: [1,3].
type Dims []int64

// String implements fmt.Stringer.
func (d Dims) String() string {
	b := []byte{'['}
	for k, n := range d {
		if k > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(append(b, ']'))
}

// Fits reports whether a shape is one of those that want stands for: the same, but for dimensions of want below 0,
// which may be anything.
func Fits(shape, want []int64) bool {
	if len(shape) != len(want) {
		return false
	}
	for k := range shape {
		if want[k] >= 0 && shape[k] != want[k] {
			return false
		}
	}
	return true
}
