//go:build cgo

package onnx

import (
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/tensor"
)

// A model whose outputs are not what its file says never answers with what clients do not expect. Where the rows of a
// batch differ it is refused when it is loaded. Other shapes may be right for other inputs than the examples: such a
// model fails queries, with the name of the output or of the node.
func TestLyingModelsDoNotAnswer(t *testing.T) {
	// The shape is computed, so that reading the file does not tell what it will be.
	reshaped := func(to []float32, declared ...int64) *onnxmodel.Graph {
		return onnxmodel.NewGraph("m").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 4).
			Initializer("f", to, int64(len(to))).
			Node("Cast", []string{"f"}, []string{"to"}, onnxmodel.AttrInt("to", int64(onnxmodel.Int64))).
			Node("Reshape", []string{"x", "to"}, []string{"y"}).Output("y", onnxmodel.Float32, declared...)
	}
	for name, g := range map[string]*onnxmodel.Graph{
		"other rows":  reshaped([]float32{-1, 2}, onnxmodel.Symbolic, 2),
		"other width": reshaped([]float32{0, 2, 2}, onnxmodel.Symbolic, 2, 3),
		"other rank":  reshaped([]float32{0, 2, 2}, onnxmodel.Symbolic, 4),
	} {
		r, err := tryLaunch(t, 4, 1, Model{Path: write(t, g)})
		if (err != nil) != (name == "other rows") {
			t.Errorf("%s: loading it ended with %v", name, err)
		}
		if err != nil {
			continue
		}
		b := one(0, floats("x", []int64{1, 4}, 1, 2, 3, 4))
		if err := r.Run(t.Context(), b); err == nil || b.Portions[0].Outputs != nil ||
			!strings.Contains(err.Error(), `y`) {
			t.Errorf("%s: a query ended with %v", name, err)
		}
		_ = r.Close()
	}
}

// A model that does not run with zeros, which nobody has given, is loaded: its queries have other inputs. One that does
// not run with the example that was given is refused.
func TestExamplesThatNobodyGaveDoNotCount(t *testing.T) {
	divided := onnxmodel.NewGraph("m").Input("x", onnxmodel.Int64, onnxmodel.Symbolic).
		Initializer("one", []float32{100}, 1).
		Node("Cast", []string{"one"}, []string{"n"}, onnxmodel.AttrInt("to", int64(onnxmodel.Int64))).
		Node("Div", []string{"n", "x"}, []string{"y"}).Output("y", onnxmodel.Int64, onnxmodel.Symbolic)
	by := func(n byte) tensor.Tensor {
		return tensor.Tensor{Name: "x", DType: tensor.Int64, Shape: []int64{1}, Data: []byte{n, 0, 0, 0, 0, 0, 0, 0}}
	}
	path := write(t, divided)
	in := launch(t, 1, 1, Model{Path: path})
	if err := in.Run(t.Context(), one(0, by(0))); err == nil {
		t.Fatal("a division by zero has an answer: the test proves nothing")
	}
	if err := in.Run(t.Context(), one(0, by(7))); err != nil {
		t.Error(err)
	}
	given := Model{Path: path, Example: func(int) []tensor.Tensor { return []tensor.Tensor{by(0)} }}
	if r, err := tryLaunch(t, 1, 1, given); err == nil {
		_ = r.Close()
		t.Error("an example that was given and fails does not count")
	}
	given.Example = func(int) []tensor.Tensor { return []tensor.Tensor{by(5)} }
	launch(t, 1, 1, given)
}
