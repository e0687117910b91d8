package loadgen

import (
	"errors"
	"math"

	"github.com/sluice-serving/sluice/tensor"
)

// mostLong bounds an input of a query with a length, in bytes.
const mostLong = 1 << 28

// checkLength reports why no query of so many items can have a length. Labelled samples have the length that they have.
func (s *Samples) checkLength(items int, length int32) error {
	open := false
	for i := range s.inputs {
		c := &s.inputs[i]
		if open = open || len(c.open) > 0; len(c.open) > 0 {
			if _, err := tensor.Elements(c.long(items, length), mostLong/8); err != nil {
				return err
			}
		}
	}
	if !open {
		return errors.New("the inputs that are sent have no open dimension: leave the lengths of the workload out")
	}
	return nil
}

// tensorsOf is Tensors for a query of a length; 0 for none. The open dimensions of each random input have it as their
// product, as near as whole numbers come.
func (s *Samples) tensorsOf(first, items int, length int32) []tensor.Tensor {
	out := s.Tensors(first, items)
	if length <= 0 {
		return out
	}
	for i := range out {
		if c := &s.inputs[i]; len(c.open) > 0 {
			out[i].Shape = c.long(items, length)
			out[i].Data = c.repeated(first%s.Count, s.Count, out[i].Shape)
		}
	}
	return out
}

// long returns the shape of an input with a length.
func (c *column) long(items int, length int32) []int64 {
	shape := append([]int64{int64(items)}, c.shape...)
	left := float64(length)
	for k, d := range c.open {
		n := max(math.Round(math.Pow(left, 1/float64(len(c.open)-k))), 1)
		shape[1+d], left = int64(n), left/n
	}
	return shape
}

// repeated returns data for a shape: that of the samples from one on, again and again. Elements of random inputs have
// one size, those of BYTES too.
func (c *column) repeated(first, count int, shape []int64) []byte {
	each, all := 1, 1
	for _, n := range c.shape {
		each *= int(n)
	}
	for _, n := range shape {
		all *= int(n)
	}
	size := len(c.data) / (each * count)
	out := make([]byte, 0, all*size)
	for at := first * each * size; len(out) < all*size; at = 0 {
		out = append(out, c.data[at:min(len(c.data), at+all*size-len(out))]...)
	}
	return out
}
