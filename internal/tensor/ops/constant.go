package ops

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/tensor"
)

// maxConstant bounds the elements of a constant.
const maxConstant = 1 << 16

var constantKind = kind{
	name: "constant", doc: "gives the same tensor always, such as a rate that a model asks for.",
	inputs:  []Port{{Name: "after", Whole: true, Doc: "any tensor, which is not looked at"}},
	outputs: []Port{{Name: "tensor", Doc: "of the shape in the options"}},
	options: []Option{
		{Name: "datatype", Default: "FP32", Doc: "`FP32`, `FP64`, `INT32`, `INT64`, `UINT8` or `BOOL`"},
		{Name: "shape", Doc: "dimensions with commas between; without it none, for a scalar"},
		{Name: "values", Required: true, Doc: "a number for all elements, or one for each with commas between"},
	},
	build: func(s *settings) body { return &constant{newConstant(s)} },
}

type constant struct{ tensor.Tensor }

func newConstant(s *settings) (t tensor.Tensor) {
	t.DType = tensor.ParseDType(s.oneOf("datatype", "FP32", "FP64", "INT32", "INT64", "UINT8", "BOOL"))
	t.Shape = []int64{}
	if s.text("shape") != "" {
		var ok bool
		if t.Shape, ok = s.sizes("shape", 0); !ok {
			return t
		}
	}
	n, err := tensor.Elements(t.Shape, maxConstant)
	if err != nil || len(t.Shape) > maxRank {
		s.bad("shape", "is %.40q, want at most %d dimensions and %d elements", s.text("shape"), maxRank, maxConstant)
		return t
	}
	parts := strings.Split(s.text("values"), ",")
	if len(parts) != 1 && int64(len(parts)) != n {
		s.bad("values", "has %d numbers, want one, or one for each of %d elements", len(parts), n)
		return t
	}
	for _, part := range parts {
		b, err := appendConstant(nil, t.DType, strings.TrimSpace(part))
		if err != nil {
			s.bad("values", "has %.40q in it: %v", part, err)
			return t
		}
		t.Data = append(t.Data, b...)
	}
	if len(parts) == 1 {
		t.Data = bytes.Repeat(t.Data, int(n))
	}
	return t
}

// appendConstant appends one element.
func appendConstant(b []byte, d tensor.DType, text string) ([]byte, error) {
	le := binary.LittleEndian
	if d == tensor.FP32 || d == tensor.FP64 {
		bits := 8 * d.Size()
		x, err := strconv.ParseFloat(text, bits)
		if d == tensor.FP32 {
			return le.AppendUint32(b, math.Float32bits(float32(x))), err
		}
		return le.AppendUint64(b, math.Float64bits(x)), err
	}
	x, err := strconv.ParseInt(text, 10, 64)
	most := int64(math.MaxInt64)
	least := -most - 1
	switch d {
	case tensor.Int32:
		least, most = math.MinInt32, math.MaxInt32
	case tensor.Uint8:
		least, most = 0, math.MaxUint8
	case tensor.Bool:
		least, most = 0, 1
	}
	if err == nil && (x < least || x > most) {
		err = fmt.Errorf("want %d to %d", least, most)
	}
	return le.AppendUint64(b, uint64(x))[:len(b)+d.Size()], err
}

func (f *constant) specs([]*tensor.Spec) ([]tensor.Spec, error) {
	return []tensor.Spec{{DType: f.DType, Shape: slices.Clone(f.Shape)}}, nil
}

func (f *constant) run([]*tensor.Tensor, *Call) ([]tensor.Tensor, []byte, error) {
	return []tensor.Tensor{{DType: f.DType, Shape: slices.Clone(f.Shape), Data: bytes.Clone(f.Data)}}, nil, nil
}
