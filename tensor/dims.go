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
