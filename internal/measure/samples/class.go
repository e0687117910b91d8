package samples

import (
	"bytes"
	"math"

	"github.com/sluice-serving/sluice/tensor"
)

// Number decodes the first element of b; false for types that are no numbers, and for half precision.
func Number(d tensor.DType, b []byte) (float64, bool) {
	if d.Size() == 0 || len(b) < d.Size() || d == tensor.FP16 || d == tensor.BF16 {
		return 0, false
	}
	return d.Number(b), true
}

// Class is what one row of an output says: its only number, or the index of the largest of several; false for outputs
// that are no numbers.
func Class(d tensor.DType, row []byte) (int64, bool) {
	size := d.Size()
	if size == 0 || len(row) == 0 || len(row)%size != 0 {
		return 0, false
	}
	if len(row) == size {
		v, ok := Number(d, row)
		return int64(v), ok
	}
	best, at := math.Inf(-1), int64(0)
	for k := 0; k < len(row); k += size {
		v, ok := Number(d, row[k:])
		if !ok {
			return 0, false
		}
		if v > best {
			best, at = v, int64(k/size)
		}
	}
	return at, true
}

// Decides returns the output that says a class: the first with several floating-point numbers, else the first with one
// whole number; -1 for none. outputs are of one item.
func Decides(outputs []tensor.Tensor) int {
	whole := -1
	for k := range outputs {
		t := &outputs[k]
		size := t.DType.Size()
		if size == 0 {
			continue
		}
		switch n := len(t.Data) / size; {
		case n > 1 && (t.DType == tensor.FP32 || t.DType == tensor.FP64):
			return k
		case n == 1 && whole < 0 && t.DType != tensor.FP32 && t.DType != tensor.FP64:
			whole = k
		}
	}
	return whole
}

// closeEnough is how far numbers may be apart for two answers to be the same, relative to the largest in them.
const closeEnough = 0.01

// Agree reports whether two answers of one item say the same: the same class where an output decides one, else the same
// outputs, with floating-point numbers at most a hundredth of the largest apart.
func Agree(a, b []tensor.Tensor) bool {
	if k := Decides(a); k >= 0 && Decides(b) == k && a[k].Name == b[k].Name {
		x, ok := Class(a[k].DType, a[k].Data)
		y, also := Class(b[k].DType, b[k].Data)
		return ok && also && x == y
	}
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if a[k].Name != b[k].Name || a[k].DType != b[k].DType || len(a[k].Data) != len(b[k].Data) ||
			!near(&a[k], &b[k]) {
			return false
		}
	}
	return true
}

func near(a, b *tensor.Tensor) bool {
	if a.DType != tensor.FP32 && a.DType != tensor.FP64 {
		return bytes.Equal(a.Data, b.Data)
	}
	size := a.DType.Size()
	largest, apart := 0.0, 0.0
	for k := 0; k+size <= len(a.Data); k += size {
		x, _ := Number(a.DType, a.Data[k:])
		y, _ := Number(b.DType, b.Data[k:])
		if x == y || math.IsNaN(x) && math.IsNaN(y) {
			continue
		}
		d := math.Abs(x - y)
		if !(d <= math.MaxFloat64) {
			return false
		}
		largest, apart = max(largest, math.Abs(x), math.Abs(y)), max(apart, d)
	}
	return apart <= closeEnough*largest
}
