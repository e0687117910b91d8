package profiler

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/runtime/native"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// TestProfilesRealModels measures two real models, one of which does many times the work of the other. It checks
// relations that hold on every machine.
func TestProfilesRealModels(t *testing.T) {
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skipf("not run without ONNX Runtime: %v", err)
	}
	models := map[serving.VariantID]onnx.Model{}
	for v, hidden := range []int64{4, 4096} {
		const width = 256
		g := onnxmodel.NewGraph("mlp").Input("x", onnxmodel.Float32, -1, width).
			Initializer("w1", make([]float32, width*hidden), width, hidden).Initializer("w2",
			make([]float32, hidden*10), hidden, 10).
			Node("MatMul", []string{"x", "w1"}, []string{"h"}).Node("Relu", []string{"h"}, []string{"a"}).
			Node("MatMul", []string{"a", "w2"}, []string{"y"}).Output("y", onnxmodel.Float32, -1, 10)
		path := filepath.Join(t.TempDir(), "model.onnx")
		if err := g.Write(path); err != nil {
			t.Fatal(err)
		}
		models[serving.VariantID(v)] = onnx.Model{Path: path}
	}
	b, err := onnx.New(onnx.Config{Models: models})
	if err != nil {
		t.Fatal(err)
	}
	spec := world(2, 4, time.Minute)
	f, err := Run(t.Context(), Config{
		Spec: spec, Backend: b, Slots: 2, Cores: 1, MaxSamples: 40, Host: ThisHost(onnx.Version()),
		ModelFile: func(v serving.VariantID) string { return models[v].Path },
		Tensors: func(v serving.VariantID) ([]tensor.Spec, bool, error) {
			i, err := b.Interface(v)
			return i.Inputs, i.Batched, err
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Points) != 2*2*3 || len(f.Loads) != 2 || f.Host.ONNXRuntime == "" {
		t.Fatalf("profile is %+v", f)
	}
	p50 := map[string]float64{}
	for _, p := range f.Points {
		t.Logf("%+v", p)
		if p.Batch == 4 && p.Concurrency == 1 {
			p50[p.Variant] = p.P50
		}
	}
	// The second model does a thousand times the arithmetic.
	if p50["a"] >= p50["b"] {
		t.Errorf("the small model takes %v us, the large one %v us", p50["a"], p50["b"])
	}
	if _, err := f.Measurements(spec); err != nil {
		t.Error(err)
	}
}
