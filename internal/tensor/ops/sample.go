package ops

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

// The sizes of dimensions of a sample that are not known.
const (
	sampleSide = 256 // of a picture
	sampleRest = 64
)

// Sample makes random inputs of so many items for the function, to measure its latency. specs are the descriptions of
// the inputs as far as they are known. A variable first dimension becomes the number of items, other variable
// dimensions get a common size. Boxes cover a part of a picture, and integers are 0.
func (f *Function) Sample(rng *rand.Rand, specs []tensor.Spec, items int) ([]tensor.Tensor, error) {
	var out []tensor.Tensor
	height, width := 1.0, 1.0
	for i := range f.kind.inputs {
		p := &f.kind.inputs[i]
		at := slices.IndexFunc(specs, func(s tensor.Spec) bool { return s.Name == p.Name })
		if at < 0 {
			if !p.Optional {
				return nil, fmt.Errorf("%s: input %q is not described", f.kind.name, p.Name)
			}
			continue
		}
		shape := f.sampleShape(p, specs[at].Shape, items, f.single(specs))
		n, err := tensor.Elements(shape, maxElements)
		if err != nil {
			return nil, fmt.Errorf("%s: input %q: %w", f.kind.name, p.Name, err)
		}
		if c, ok := f.body.(*crop); ok && p.Name == "image" && !c.normalized {
			view := c.pictures(&tensor.Tensor{Shape: shape})
			height, width = float64(view.height), float64(view.width)
		}
		out = append(out, sample(rng, p, specs[at].DType, shape, n, height, width))
	}
	return out, nil
}

// sampleShape fills in the variable dimensions of a shape.
func (f *Function) sampleShape(p *Port, known []int64, items int, single bool) []int64 {
	shape := slices.Clone(known)
	if shape == nil {
		shape = slices.Repeat([]int64{-1}, 2)
		if len(p.Ranks) > 0 {
			shape = slices.Repeat([]int64{-1}, p.Ranks[0])
		}
	}
	boxes, picture := p.Name == "boxes", len(p.Ranks) == 1 && p.Ranks[0] == 4
	for i, d := range shape {
		switch {
		case d >= 0:
		case i == 0 && p.Whole:
			shape[i] = 1
		case i == 0 && single:
			shape[i] = sampleRest
		case i == 0:
			shape[i] = int64(items)
		case boxes && i == len(shape)-1:
			shape[i] = 4
		case picture && i == f.channels():
			shape[i] = 3
		case picture:
			shape[i] = sampleSide
		default:
			shape[i] = sampleRest
		}
	}
	return shape
}

// single reports whether the boxes of a function all belong to one item.
func (f *Function) single(specs []tensor.Spec) bool {
	at := slices.IndexFunc(specs, func(s tensor.Spec) bool { return s.Name == "boxes" })
	return f.kind.framed && (at < 0 || len(specs[at].Shape) != 3)
}

// channels returns the index of the dimension that counts the channels of a picture.
func (f *Function) channels() int {
	switch b := f.body.(type) {
	case *crop:
		if b.nchw {
			return 1
		}
	case *resize:
		if b.nchw {
			return 1
		}
	}
	return 3
}

func sample(rng *rand.Rand, p *Port, d tensor.DType, shape []int64, n int64, height, width float64) tensor.Tensor {
	t := tensor.Tensor{Name: p.Name, DType: d, Shape: shape}
	switch {
	case p.Name == "boxes":
		for range n / 4 {
			x, y := 0.75*rng.Float64(), 0.75*rng.Float64()
			one := float32s([]float32{
				float32(x * width), float32(y * height), float32((x + 0.05 + 0.2*rng.Float64()) * width),
				float32((y + 0.05 + 0.2*rng.Float64()) * height),
			}, 4)
			t.Data = append(t.Data, one.Data...)
		}
	case d == tensor.FP32:
		t.Data = make([]byte, 4*n)
		for i := range int(n) {
			putFloat(t.Data, i, rng.Float32())
		}
	case d == tensor.Uint8:
		t.Data = make([]byte, 0, n+8)
		for int64(len(t.Data)) < n {
			t.Data = binary.LittleEndian.AppendUint64(t.Data, rng.Uint64())
		}
		t.Data = t.Data[:n]
	case d == tensor.Bytes:
		for range n {
			t.Data = tensor.AppendBytes(t.Data, []byte("sample"))
		}
	default:
		t.Data = make([]byte, n*int64(d.Size()))
	}
	return t
}
