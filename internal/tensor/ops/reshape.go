package ops

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

// maxRank bounds the dimensions of a shape in an option.
const maxRank = 8

var reshapeKind = kind{
	name: "reshape", doc: "gives the same elements another shape.",
	inputs:  []Port{{Name: "tensor", Doc: "any tensor, [n, ...]"}},
	outputs: []Port{{Name: "tensor", Doc: "[n, SHAPE], or SHAPE with whole"}},
	options: []Option{
		{
			Name: "shape", Default: "-1",
			Doc: "dimensions with commas between, such as `3,28,28`; one may be -1, which is what is left. The first " +
				"dimension, the number of rows, is kept and not listed",
		},
		{
			Name: "whole", Default: "false",
			Doc: "`true`: shape lists the first dimension, too, so that rows can be merged and split",
		},
	},
	build: func(s *settings) body {
		f := &reshape{whole: s.boolean("whole")}
		var ok bool
		if f.shape, ok = s.sizes("shape", -1); !ok {
			return f
		}
		open := 0
		for _, n := range f.shape {
			if n == -1 {
				open++
			}
		}
		if open > 1 || len(f.shape) > maxRank {
			s.bad("shape", "is %.40q, want at most %d dimensions, one of them -1 at the most", s.text("shape"), maxRank)
		}
		return f
	},
}

type reshape struct {
	shape []int64
	whole bool
}

func (f *reshape) specs(in []*tensor.Spec) ([]tensor.Spec, error) {
	from := in[0].Shape
	if from != nil && !slices.Contains(from, -1) {
		to, err := f.shaped(from)
		return []tensor.Spec{{DType: in[0].DType, Shape: to}}, err
	}
	if f.whole {
		return []tensor.Spec{{DType: in[0].DType, Shape: slices.Clone(f.shape)}}, nil
	}
	rows := int64(-1)
	if len(from) > 0 {
		rows = from[0]
		if !slices.Contains(from[1:], -1) { // a row is known, their number is not
			to, err := f.shaped(append([]int64{1}, from[1:]...))
			if err != nil {
				return nil, err
			}
			to[0] = rows
			return []tensor.Spec{{DType: in[0].DType, Shape: to}}, nil
		}
	}
	return []tensor.Spec{{DType: in[0].DType, Shape: append([]int64{rows}, f.shape...)}}, nil
}

// shaped fills in the dimension that is -1.
func (f *reshape) shaped(from []int64) ([]int64, error) {
	if len(from) == 0 && !f.whole {
		return nil, fmt.Errorf("a scalar has no rows to keep: set whole")
	}
	left, err := tensor.Elements(from, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	to := slices.Clone(f.shape)
	if !f.whole {
		to = append([]int64{from[0]}, to...)
	}
	at := slices.Index(to, -1)
	if at >= 0 {
		to[at] = 1
	}
	n, err := tensor.Elements(to, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	if at >= 0 && n > 0 && left%n == 0 {
		to[at] = left / n
		return to, nil
	}
	if at >= 0 && n == 0 && left == 0 {
		to[at] = 0 // without elements the dimension cannot be computed
		return to, nil
	}
	if at >= 0 || n != left {
		return nil, fmt.Errorf("%d elements of shape %v cannot have the shape %v", left, from, f.shape)
	}
	return to, nil
}

func (f *reshape) run(in []*tensor.Tensor, _ *Call) ([]tensor.Tensor, []byte, error) {
	to, err := f.shaped(in[0].Shape)
	if err != nil {
		return nil, nil, err
	}
	return []tensor.Tensor{{DType: in[0].DType, Shape: to, Data: bytes.Clone(in[0].Data)}}, nil, nil
}
