//go:build cgo

package onnx

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/tensor"
)

// A file may say shapes that its model gives for some inputs only, or for none. The answers have those that it gives.
func TestOutputsOfOtherShapesThanTheFileSays(t *testing.T) {
	needRuntime(t)
	axes := func(n ...byte) tensor.Tensor {
		x := tensor.Tensor{Name: "a", DType: tensor.Int64, Shape: []int64{int64(len(n))}}
		for _, v := range n {
			x.Data = append(x.Data, v, 0, 0, 0, 0, 0, 0, 0)
		}
		return x
	}
	mask := func(n ...byte) tensor.Tensor {
		return tensor.Tensor{Name: "m", DType: tensor.Bool, Shape: []int64{int64(len(n))}, Data: n}
	}
	for _, d := range []onnxmodel.DType{onnxmodel.Float32, onnxmodel.Int64, onnxmodel.String, onnxmodel.Float16} {
		own := tensor.ParseDType(d.String())
		in := launch(t, 1, 1, Model{
			Path: write(t, onnxmodel.NewGraph("chosen").Input("x", d, 3).Input("m", onnxmodel.Bool, 3).
				Node("Compress", []string{"x", "m"}, []string{"y"}).Output("y", d, 3).
				Node("Compress", []string{"x", "m"}, []string{"z"}).Output("z", d, 3)),
			Example: func(int) []tensor.Tensor { return []tensor.Tensor{sample("x", own, 0, 3), mask(1, 1, 1)} },
		})
		for rows, m := range []tensor.Tensor{mask(0, 0, 0), mask(0, 1, 0), mask(1, 0, 1), mask(1, 1, 1)} {
			b := &dataplane.Batch{Items: 1, Portions: []dataplane.Portion{
				{Items: 1, Inputs: []tensor.Tensor{sample("x", own, rows, 3), m}},
			}}
			err := in.Run(t.Context(), b)
			if own == tensor.FP16 && rows < 3 { // the binding gives such outputs in shapes that the file says only
				if err == nil || !strings.Contains(err.Error(), "its file says [3]") {
					t.Errorf("%s, %d rows: error %v", d, rows, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s, %d rows: %v", d, rows, err)
			}
			for _, y := range b.Portions[0].Outputs {
				if !slices.Equal(y.Shape, []int64{int64(rows)}) || y.Validate() != nil {
					t.Errorf("%s, %d rows: output %q has shape %v: %v", d, rows, y.Name, y.Shape, y.Validate())
				}
			}
		}
	}
	in := launch(t, 1, 1, Model{
		Path: write(t, onnxmodel.NewGraph("squeezed").Input("x", onnxmodel.Float32, 1, 1).
			Input("a", onnxmodel.Int64, onnxmodel.Symbolic).
			Node("Squeeze", []string{"x", "a"}, []string{"y"}).Output("y", onnxmodel.Float32, 1)),
		Example: func(int) []tensor.Tensor { return []tensor.Tensor{floats("x", []int64{1, 1}, 7), axes(0)} },
	})
	for _, a := range []tensor.Tensor{axes(0, 1), axes(0), axes(0, 1)} {
		b := &dataplane.Batch{Items: 1, Portions: []dataplane.Portion{
			{Items: 1, Inputs: []tensor.Tensor{floats("x", []int64{1, 1}, 7), a}},
		}}
		err := in.Run(t.Context(), b)
		scalar := a.Shape[0] == 2
		if scalar != (err != nil) || scalar && !strings.Contains(err.Error(), "Invalid rank") {
			t.Errorf("%d axes: error %v", a.Shape[0], err)
		}
	}
}
