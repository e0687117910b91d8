package ops

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

var thresholdKind = kind{
	name: "threshold", doc: "keeps the rows whose score is at least so much, in their order.",
	inputs: []Port{
		{
			Name: "scores", DTypes: floats, Ranks: []int{1, 2},
			Doc: "[n] or [n, c]: of several scores in a row the largest counts, or that of a column",
		},
		{Name: "rows", Optional: true, Doc: "[n, ...]: what is kept along with the scores"},
	},
	outputs: []Port{
		{Name: "scores", Doc: "[m] or [m, c] FP32"},
		{Name: "rows", Doc: "[m, ...]; INT64 numbers of the rows when none were given"},
		{Name: "index", Doc: "[m] INT64: which rows they were, counted through the query"},
	},
	options: []Option{
		{Name: "least", Required: true, Doc: "the least score that is kept"},
		{
			Name: "column",
			Doc:  "of scores with several columns: the one that counts, from 0; without it the largest of the row",
		},
	},
	build: func(s *settings) body {
		f := &threshold{least: float32(s.number("least", -math.MaxFloat32, math.MaxFloat32)), column: -1}
		if _, ok := s.with["column"]; ok {
			f.column = s.whole("column", 0, maxElements)
		}
		return f
	},
}

type threshold struct {
	least  float32
	column int // -1 for the largest
}

func (f *threshold) specs(in []*tensor.Spec) ([]tensor.Spec, error) {
	scores := tensor.Spec{DType: tensor.FP32, Shape: open(in[0].Shape)}
	index := tensor.Spec{DType: tensor.Int64, Shape: []int64{-1}}
	if s := in[0].Shape; len(s) == 2 && s[1] >= 0 && int64(f.column) >= s[1] {
		return nil, f.noColumn(s[1])
	}
	if in[1] == nil {
		return []tensor.Spec{scores, {DType: tensor.Int64, Shape: []int64{-1}}, index}, nil
	}
	if in[1].Shape != nil && len(in[1].Shape) == 0 {
		return nil, errNoRows
	}
	return []tensor.Spec{scores, {DType: in[1].DType, Shape: open(in[1].Shape)}, index}, nil
}

// open returns a shape whose first dimension is open.
func open(shape []int64) []int64 {
	out := slices.Clone(shape)
	if len(out) > 0 {
		out[0] = -1
	}
	return out
}

var errNoRows = fmt.Errorf("input \"rows\" has no rows: it is a scalar")

func (f *threshold) noColumn(columns int64) error {
	return fmt.Errorf("column %d of %d does not exist: columns are counted from 0", f.column, columns)
}

func (f *threshold) run(in []*tensor.Tensor, c *Call) ([]tensor.Tensor, []byte, error) {
	n, columns := int(in[0].Shape[0]), 1
	if len(in[0].Shape) == 2 {
		columns = int(in[0].Shape[1])
	}
	if f.column >= columns {
		return nil, nil, f.noColumn(int64(columns))
	}
	rows := in[1]
	if rows != nil {
		if len(rows.Shape) == 0 {
			return nil, nil, errNoRows
		}
		if err := checkEqual("the number of rows", rows.Shape[0], int64(n)); err != nil {
			return nil, nil, err
		}
	}
	var kept []int
	for i := range n {
		if f.score(in[0].Data[4*i*columns:], columns) >= f.least { // NaN is not kept
			kept = append(kept, i)
		}
	}
	index := make([]int64, len(kept))
	for k, i := range kept {
		index[k] = int64(c.Offset + i)
	}
	out := []tensor.Tensor{pick(in[0], kept), int64s(index, int64(len(index))), int64s(index, int64(len(index)))}
	if rows != nil {
		out[1] = pick(rows, kept)
	}
	return out, nil, nil
}

func (f *threshold) score(row []byte, columns int) float32 {
	if f.column >= 0 {
		return float(row, f.column)
	}
	best := float32(math.Inf(-1))
	for i := range columns {
		if v := float(row, i); v > best {
			best = v
		}
	}
	return best
}

// pick returns a copy of some rows. rows must ascend.
func pick(t *tensor.Tensor, rows []int) tensor.Tensor {
	out := tensor.Tensor{DType: t.DType, Shape: slices.Clone(t.Shape)}
	out.Shape[0] = int64(len(rows))
	per := count(t.Shape[1:])
	if t.DType != tensor.Bytes {
		size := per * t.DType.Size()
		for _, r := range rows {
			out.Data = append(out.Data, t.Data[r*size:(r+1)*size]...)
		}
		return out
	}
	element, next := 0, 0
	_ = tensor.EachBytes(t.Data, func(e []byte) { // was checked
		for next < len(rows) && element >= (rows[next]+1)*per {
			next++
		}
		if next < len(rows) && element >= rows[next]*per {
			out.Data = tensor.AppendBytes(out.Data, e)
		}
		element++
	})
	return out
}
