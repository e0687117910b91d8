package samples

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"path"
	"strings"

	"github.com/sluice-serving/sluice/tensor"
)

// Encode returns a tensor as the content of a file: .npy, .png of one picture (height and width with 1 or 3 channels
// first or last; values of FP32 in [0, 1], UINT8 as they are), or its bytes for any other ending.
func Encode(name string, t *tensor.Tensor) ([]byte, error) {
	switch strings.ToLower(path.Ext(name)) {
	case ".npy":
		return encodeNPY(t)
	case ".png":
		return encodePNG(t)
	}
	return t.Data, nil
}

// encodeNPY writes version 1.0 of NumPy's format.
func encodeNPY(t *tensor.Tensor) ([]byte, error) {
	of := ""
	for name, d := range npyTypes { // any order: one of them is it
		if d == t.DType {
			of = name
		}
	}
	if of == "" {
		return nil, fmt.Errorf("%s has no counterpart in .npy: name another ending for its bytes", t.DType)
	}
	var shape strings.Builder
	for _, d := range t.Shape {
		fmt.Fprintf(&shape, "%d, ", d)
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", of,
		strings.TrimSuffix(shape.String(), " "))
	const fixed = 10 // magic, version, length
	head += strings.Repeat(" ", 63-(fixed+len(head))%64) + "\n"
	out := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(head)))
	return append(append(out, head...), t.Data...), nil
}

func encodePNG(t *tensor.Tensor) ([]byte, error) {
	shape := t.Shape
	for len(shape) > 2 && shape[0] == 1 {
		shape = shape[1:]
	}
	channels, first := int64(1), true
	switch {
	case len(shape) == 3 && shape[0] == 3:
		channels, shape = 3, shape[1:]
	case len(shape) == 3 && (shape[2] == 1 || shape[2] == 3):
		channels, shape, first = shape[2], shape[:2], false
	}
	if len(shape) != 2 || shape[0] < 1 || shape[1] < 1 || t.DType != tensor.FP32 && t.DType != tensor.Uint8 {
		return nil, fmt.Errorf("%s %v is no picture: want FP32 or UINT8 with height and width, and 1 or 3 channels",
			t.DType, tensor.Dims(t.Shape))
	}
	h, w := shape[0], shape[1]
	if int64(len(t.Data)) != h*w*channels*int64(t.DType.Size()) {
		return nil, errors.New("it has not as many bytes as its shape says")
	}
	at := func(y, x, c int64) uint8 {
		k := (y*w+x)*channels + c
		if first {
			k = (c*h+y)*w + x
		}
		if t.DType == tensor.Uint8 {
			return t.Data[k]
		}
		v := math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*k:]))
		if !(v > 0) {
			return 0 // also for what is no number
		}
		return uint8(min(v, 1)*255 + 0.5)
	}
	img := image.NewNRGBA(image.Rect(0, 0, int(w), int(h)))
	for y := range h {
		for x := range w {
			c := color.NRGBA{at(y, x, 0), 0, 0, 255}
			if c.G, c.B = c.R, c.R; channels == 3 {
				c.G, c.B = at(y, x, 1), at(y, x, 2)
			}
			img.SetNRGBA(int(x), int(y), c)
		}
	}
	var b bytes.Buffer
	err := png.Encode(&b, img)
	return b.Bytes(), err
}
