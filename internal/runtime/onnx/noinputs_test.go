//go:build cgo

package onnx

import (
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// A model may have no inputs: what it gives is always the same, or drawn by chance.
func TestModelsWithoutInputs(t *testing.T) {
	shape := func(n ...int64) *onnxmodel.Graph {
		return onnxmodel.NewGraph("none").InitializerInt64("shape", n, int64(len(n))).
			Node("ConstantOfShape", []string{"shape"}, []string{"y"})
	}
	in := launch(t, 4, 1,
		Model{Path: write(t, shape(2, 3).Output("y", onnxmodel.Float32, 2, 3))},
		Model{Path: write(t, shape(2).Output("y", onnxmodel.Float32, 2).Node("Cast", []string{"y"}, []string{"h"},
			onnxmodel.AttrInt("to", int64(onnxmodel.Float16))).Output("h", onnxmodel.Float16, 2))},
		Model{Path: withConstantInputs(t, onnxmodel.DefaultIR, onnxmodel.NewGraph("given").
			Initializer("k", []float32{1, 2}, 2).Node("Neg", []string{"k"}, []string{"y"}).
			Output("y", onnxmodel.Float32, 2), "k")},
	)
	for v, want := range []string{
		"[2,3]" + strings.Repeat("\x00", 24),
		"[2]" + strings.Repeat("\x00", 8) + "[2]" + strings.Repeat("\x00", 4),
		"[2]" + string(floats("", nil, -1, -2).Data),
	} {
		for range 2 {
			if got := ran(t, in, v); got != want {
				t.Errorf("model %d: got %q, want %q", v, got, want)
			}
		}
	}
	got, want := ran(t, in, 2, floats("k", []int64{2}, 5, 6)), "[2]"+string(floats("", nil, -5, -6).Data)
	if got != want {
		t.Errorf("with an optional input: got %q, want %q", got, want)
	}
	open := launch(t, 1, 1, Model{Path: write(t, onnxmodel.Identity(onnxmodel.Float32, 1))}, Model{
		Path: write(t, shape(2).Node("NonZero", []string{"y"}, []string{"at"}).
			Output("at", onnxmodel.Int64, 1, onnxmodel.Symbolic)),
	})
	err := open.Run(t.Context(), &dataplane.Batch{Variant: 1, Items: 1, Portions: []dataplane.Portion{{Items: 1}}})
	if err == nil || !strings.Contains(err.Error(), "its file says the whole shape") {
		t.Errorf("a model whose output is of any shape: %v", err)
	}
}

// ran runs a model and returns the shapes and bytes of its outputs.
func ran(t *testing.T, in *instance, variant int, inputs ...tensor.Tensor) (out string) {
	t.Helper()
	b := &dataplane.Batch{Variant: serving.VariantID(variant), Items: 1,
		Portions: []dataplane.Portion{{Items: 1, Inputs: inputs}}}
	if err := in.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, x := range b.Portions[0].Outputs {
		out += tensor.Dims(x.Shape).String() + string(x.Data)
	}
	return out
}
