package operators

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/zoo"
	"github.com/sluice-serving/sluice/internal/runtime/native"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
)

// quick is less effort than a good measurement needs.
var quick = Effort{MinTime: 4 * time.Millisecond, MaxTime: 40 * time.Millisecond, MinRuns: 8, MaxRuns: 500}

func newRuntime(t *testing.T) Runtime {
	t.Helper()
	if _, err := native.ONNXRuntime(); err != nil {
		if os.Getenv(native.EnvONNXRuntime) != "" || !errors.Is(err, native.ErrMissing) {
			t.Fatal(err)
		}
		t.Skipf("not run without ONNX Runtime: %v", err)
	}
	rt, err := onnx.New(onnx.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func network(t *testing.T, name string) string {
	t.Helper()
	for _, n := range zoo.Networks() {
		if n.Name == name {
			path := filepath.Join(t.TempDir(), name+".onnx")
			if err := n.Build().Write(path); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	t.Fatalf("there is no network %q", name)
	return ""
}

func memory(t *testing.T) *Store {
	t.Helper()
	s, err := Open("", profiler.Host{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPredictsRealNetworks checks what holds however busy the machine is: an operator is measured once, and branches
// that run at once never take longer than one after the other. How near predictions come to measured times is figure 8
// of `sluice reproduce infless`.
func TestPredictsRealNetworks(t *testing.T) {
	rt := newRuntime(t)
	store := memory(t)
	c := Config{Runtime: rt, Store: store, Effort: quick, Rounds: 1}
	for _, name := range []string{"mlp", "inception", "gru"} {
		path := network(t, name)
		batches := []int{1, 16}
		got, err := Predict(t.Context(), c, path, batches, []int{1})
		if err != nil {
			t.Fatal(err)
		}
		if got.Load <= 0 || len(got.Predictions) != 2 {
			t.Fatalf("%s: %+v", name, got)
		}
		for _, p := range got.Predictions {
			if p.Parallel.Best > p.Sequential.Best*1.000001 || p.Call.Best <= 0 || p.New == 0 || p.Operators == 0 {
				t.Errorf("%s: %+v", name, p)
			}
			if name == "inception" && p.Parallel.Best >= p.Sequential.Best {
				t.Errorf("%s has branches, but takes %v us with them at once and %v us without", name, p.Parallel.Best,
					p.Sequential.Best)
			}
		}
		again, err := Predict(t.Context(), c, path, batches, []int{1})
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range again.Predictions {
			if p.New != 0 || p.Sequential != got.Predictions[i].Sequential {
				t.Errorf("%s: predicted again: %+v, before %+v", name, p, got.Predictions[i])
			}
		}
	}
}

// TestSharedOperators predicts a network from the operators of another one with the same layers, without measuring any.
func TestSharedOperators(t *testing.T) {
	rt := newRuntime(t)
	layers := func(name string, weight float32) string {
		w := make([]float32, 64*64)
		for i := range w {
			w[i] = weight
		}
		g := onnxmodel.NewGraph(name).Input("x", onnxmodel.Float32, -1, 64).Initializer("w", w, 64, 64).
			Node("MatMul", []string{"x", "w"}, []string{"h"}).Node("Relu", []string{"h"}, []string{"r"}).
			Node("MatMul", []string{"r", "w"}, []string{"y"}).Output("y", onnxmodel.Float32, -1, 64)
		path := filepath.Join(t.TempDir(), "model.onnx")
		if err := g.Write(path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := Config{Runtime: rt, Store: memory(t), Effort: quick, Rounds: 1}
	first, err := Predict(t.Context(), c, layers("one", 0.1), []int{2}, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	// A call, one kind of MatMul, and Relu.
	if p := first.Predictions[0]; p.Operators != 3 || p.New != 3 {
		t.Errorf("%+v, want three operators, of them two kinds, and a call", p)
	}
	second, err := Predict(t.Context(), c, layers("two", 0.2), []int{2}, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	if p := second.Predictions[0]; p.New != 0 {
		t.Errorf("%+v, want nothing new: weights do not matter", p)
	}
}

// TestUnbatched predicts a model that takes one item, and checks that more are an error.
func TestUnbatched(t *testing.T) {
	rt := newRuntime(t)
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := onnxmodel.Add(onnxmodel.Float32, 4, 4).Write(path); err != nil {
		t.Fatal(err)
	}
	c := Config{Runtime: rt, Store: memory(t), Effort: quick, Rounds: 1}
	if _, err := Predict(t.Context(), c, path, []int{1}, []int{1}); err != nil {
		t.Error(err)
	}
	if _, err := Predict(t.Context(), c, path, []int{1, 2}, []int{1}); err == nil ||
		!strings.Contains(err.Error(), "no batch dimension") {
		t.Errorf("error is %v, want one that says that there is no batch dimension", err)
	}
}

// TestCancelled checks that a cancelled prediction stops between two operators and stores what was measured.
func TestCancelled(t *testing.T) {
	rt := newRuntime(t)
	path := filepath.Join(t.TempDir(), "operators.json")
	host := profiler.ThisHost(onnx.Version())
	store, err := Open(path, host)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := Config{Runtime: rt, Store: store, Effort: quick, Rounds: 1, Progress: func(done, _ int, _ string) {
		if done == 2 {
			cancel()
		}
	}}
	if _, err := Predict(ctx, c, network(t, "mlp"), []int{1}, []int{1}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v, want that it was cancelled", err)
	}
	kept, err := Open(path, host)
	if err != nil {
		t.Fatal(err)
	}
	if kept.Len() != 2 {
		t.Errorf("%d operators were kept, want 2", kept.Len())
	}
}
