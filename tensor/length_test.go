package tensor

import (
	"math"
	"testing"
)

// The length is the product of the dimensions that are it, and unknown where an input lacks one.
func TestLength(t *testing.T) {
	picture := []Tensor{{Name: "mask", Shape: []int64{2}}, {Name: "picture", Shape: []int64{2, 3, 48, 160}}}
	huge := []Tensor{{Name: "picture", Shape: []int64{1, 3, math.MaxInt64, math.MaxInt64}}}
	for _, c := range []struct {
		of     *Length
		inputs []Tensor
		want   int32
	}{
		{&Length{"picture", []int{2, 3}}, picture, 7680},
		{&Length{"picture", []int{3}}, picture, 160},
		{&Length{"picture", []int{4}}, picture, 0},
		{&Length{"text", []int{1}}, picture, 0},
		{&Length{"mask", []int{1}}, []Tensor{{Name: "mask", Shape: []int64{2, 0}}}, 0},
		{&Length{"picture", []int{2, 3}}, huge, math.MaxInt32},
		{nil, picture, 0},
	} {
		if got := c.of.Of(c.inputs); got != c.want {
			t.Errorf("%+v of %v: %d, want %d", c.of, c.inputs, got, c.want)
		}
	}
}
