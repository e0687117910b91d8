package ops

import (
	"math"

	"github.com/sluice-serving/sluice/tensor"
)

// box is x1, y1, x2, y2.
type box [4]float64

// boxAt reads row i of boxes.
func boxAt(data []byte, i int) (b box) {
	for k := range b {
		b[k] = float64(float(data, 4*i+k))
	}
	return b
}

func (b box) finite() bool {
	for _, v := range b {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// area returns 0 for a box whose corners are swapped.
func (b box) area() float64 { return max(0, b[2]-b[0]) * max(0, b[3]-b[1]) }

// overlap is the intersection of two boxes over their union, in [0, 1]; 0 when either has no area.
func overlap(a, b box) float64 {
	both := box{max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])}.area()
	if both <= 0 {
		return 0
	}
	return both / (a.area() + b.area() - both)
}

// checkBoxes checks the last dimension of boxes.
func checkBoxes(shape []int64) error {
	if len(shape) == 0 {
		return nil
	}
	return checkEqual("the last dimension of boxes", shape[len(shape)-1], 4)
}

// boxCounts returns the number of pictures and of boxes in each: n and k for shape [n, k, 4], 1 and k for shape [k, 4].
func boxCounts(t *tensor.Tensor) (n, k int) {
	if len(t.Shape) == 2 {
		return 1, int(t.Shape[0])
	}
	return int(t.Shape[0]), int(t.Shape[1])
}
