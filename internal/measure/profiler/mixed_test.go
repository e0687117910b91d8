package profiler

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/sluice-serving/sluice/tensor"
)

func floats(v ...float32) *tensor.Tensor {
	t := &tensor.Tensor{DType: tensor.FP32, Shape: []int64{int64(len(v))}}
	for _, x := range v {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(x))
	}
	return t
}

// Sums in another order and coarse numbers are alike, what other items have changed is not.
func TestAlike(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	raw := func(d tensor.DType, data string) *tensor.Tensor {
		return &tensor.Tensor{DType: d, Shape: []int64{int64(len(data) / max(d.Size(), 1))}, Data: []byte(data)}
	}
	for name, c := range map[string]struct {
		a, b *tensor.Tensor
		want bool
	}{
		"rounding":             {floats(1, 100), floats(1.0001, 100.001), true},
		"quantised":            {floats(1, 100), floats(4, 97), true},
		"zero beside a mean":   {floats(0, 0), floats(0.1, -0.1), false},
		"other numbers":        {floats(1, 2), floats(2, 1), false},
		"the same holes":       {floats(nan, inf, 1), floats(nan, inf, 1.001), true},
		"a new hole":           {floats(nan, 1), floats(2, 1), false},
		"a new infinity":       {floats(inf, 1), floats(2, 1), false},
		"other sizes":          {floats(1), floats(1, 2), false},
		"other types":          {raw(tensor.Int8, "ab"), raw(tensor.Uint8, "ab"), false},
		"texts":                {raw(tensor.Bytes, "ab"), raw(tensor.Bytes, "ac"), false},
		"signed":               {raw(tensor.Int8, "\xff\x64"), raw(tensor.Int8, "\x01\x64"), true},
		"unsigned":             {raw(tensor.Uint8, "\xff\x64"), raw(tensor.Uint8, "\x01\x64"), false},
		"classes":              {raw(tensor.Int16, "\x03\x00"), raw(tensor.Int16, "\x07\x00"), false},
		"half precision":       {raw(tensor.FP16, "\x00\x3c"), raw(tensor.FP16, "\x01\x3c"), true},
		"half precision, sign": {raw(tensor.FP16, "\x00\x3c"), raw(tensor.FP16, "\x00\xbc"), false},
		"brain floats":         {raw(tensor.BF16, "\x80\x3f"), raw(tensor.BF16, "\x81\x3f"), true},
	} {
		if got := alike(c.a, c.b); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
		if alike(c.a, c.b) != alike(c.b, c.a) {
			t.Errorf("%s: the order counts", name)
		}
	}
}
