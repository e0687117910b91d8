//go:build cgo

package onnx

import (
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/models/onnxmodel"
)

// A model whose outputs are not what its file says is refused when it is loaded, with the name of the output: later it
// would fail queries, or answer them with what clients do not expect.
func TestLyingModelsAreRefusedAtLoad(t *testing.T) {
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
		if err == nil {
			_ = r.Close()
			t.Errorf("%s: it was loaded", name)
			continue
		}
		t.Log(name, err)
		if !strings.Contains(err.Error(), `y`) {
			t.Errorf("%s: %v does not name the output", name, err)
		}
	}
}
