//go:build cgo

package onnx

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// TestOptimize checks that fused operators lie in the file, that the graph answers as before when it is run as it is,
// and that AsIs keeps the runtime from optimising.
func TestOptimize(t *testing.T) {
	needRuntime(t)
	weights := []float32{1, -1, 2, 0.5}
	path := write(t, onnxmodel.NewGraph("dense").Input("x", onnxmodel.Float32, -1, 2).
		Initializer("w", weights, 2, 2).Initializer("b", []float32{0.25, -3}, 2).
		Node("Gemm", []string{"x", "w", "b"}, []string{"h"}).Node("Relu", []string{"h"}, []string{"y"}).Output("y",
		onnxmodel.Float32, -1, 2))
	b, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	fast := filepath.Join(t.TempDir(), "fast.onnx")
	if err := b.Optimize(path, fast); err != nil {
		t.Fatal(err)
	}
	m, err := onnxmodel.Load(fast)
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Graph.Node; len(n) != 1 || n[0].OpType != "FusedGemm" {
		t.Fatalf("the optimised graph is %v, want one FusedGemm", n)
	}
	var answers []string
	for _, asIs := range []bool{false, true} {
		for _, file := range []string{path, fast} {
			r, err := b.Open(t.Context(), file, 1, 2, asIs)
			if err != nil {
				t.Fatal(err)
			}
			batch := one(0, floats("x", []int64{1, 2}, 3, 4), floats("x", []int64{1, 2}, -1, 2))
			if err := r.Run(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			first, second := batch.Portions[0].Outputs[0].Data, batch.Portions[1].Outputs[0].Data
			answers = append(answers, string(first)+string(second))
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	for i := range answers {
		if answers[i] != answers[0] {
			t.Errorf("run %d answers otherwise than the first", i)
		}
	}
	if err := b.Optimize(filepath.Join(t.TempDir(), "none.onnx"), fast); err == nil ||
		!strings.Contains(err.Error(), "none.onnx") {
		t.Errorf("error is %v, want one that names the file", err)
	}
}
