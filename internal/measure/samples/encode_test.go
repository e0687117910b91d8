package samples

import (
	"bytes"
	"encoding/binary"
	"image/png"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/tensor"
)

// What is written as .npy is read back as it was, whatever its type and shape.
func TestNPYRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for name, d := range npyTypes {
		for _, shape := range [][]int64{{1}, {2, 3}, {1, 3, 4, 5}, {1, 70000}} {
			x := tensor.Tensor{Name: "x", DType: d, Shape: shape}
			n, err := tensor.Elements(shape, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			x.Data = make([]byte, int(n)*d.Size())
			for k := range x.Data {
				x.Data[k] = byte(rng.IntN(2)) // no two of them are other numbers than they look like
			}
			b, err := Encode("x.npy", &x)
			if err != nil || (len(b)-len(x.Data))%64 != 0 {
				t.Fatalf("%s: %v, a header of %d bytes", name, err, len(b)-len(x.Data))
			}
			got, err := decodeNPY(b, &tensor.Spec{Name: "x", DType: d, Shape: shape})
			if err != nil || !bytes.Equal(got.Data, x.Data) {
				t.Errorf("%s %v: %v", name, shape, err)
			}
		}
	}
	if _, err := Encode("x.npy", &tensor.Tensor{DType: tensor.Bytes}); err == nil {
		t.Error("texts were written as .npy")
	}
}

// Pictures are written with channels first or last, and one channel is grey.
func TestPNG(t *testing.T) {
	floats := func(shape []int64, v ...float32) *tensor.Tensor {
		x := &tensor.Tensor{Name: "x", DType: tensor.FP32, Shape: shape}
		for _, f := range v {
			x.Data = binary.LittleEndian.AppendUint32(x.Data, math.Float32bits(f))
		}
		return x
	}
	for _, x := range []struct {
		t    *tensor.Tensor
		want [3]uint32 // of the pixel at 1, 0
	}{
		{floats([]int64{1, 1, 1, 2}, 0, 2), [3]uint32{255, 255, 255}},
		{floats([]int64{1, 3, 1, 2}, 0, 0.2, 0, 0.4, 0, -1), [3]uint32{51, 102, 0}},
		{floats([]int64{1, 2, 2, 3}, 0, 0, 0, 0.2, 0.4, 0.6, 0, 0, 0, 0, 0, 0), [3]uint32{51, 102, 153}},
		{&tensor.Tensor{DType: tensor.Uint8, Shape: []int64{1, 2}, Data: []byte{1, 7}}, [3]uint32{7, 7, 7}},
	} {
		b, err := Encode("x.png", x.t)
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		r, g, bl, _ := img.At(1, 0).RGBA()
		if got := [3]uint32{r >> 8, g >> 8, bl >> 8}; got != x.want {
			t.Errorf("%v: %v, want %v", x.t.Shape, got, x.want)
		}
	}
	for _, x := range []*tensor.Tensor{
		floats([]int64{5}, 1, 2, 3, 4, 5), {DType: tensor.Int64, Shape: []int64{1, 1}, Data: make([]byte, 8)},
		floats([]int64{2, 2, 2}, 1, 2, 3, 4, 5, 6, 7, 8),
	} {
		if _, err := Encode("x.png", x); err == nil {
			t.Errorf("%v was written as a picture", x.Shape)
		}
	}
}
