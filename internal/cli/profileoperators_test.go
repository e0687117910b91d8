package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/host/measuring"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/runtime/native"
)

// modelWorld writes a sluice.yaml with a real model and returns its path.
func modelWorld(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	w := make([]float32, 64*8)
	for i := range w {
		w[i] = float32(i%7) / 7
	}
	g := onnxmodel.NewGraph("dense").Input("x", onnxmodel.Float32, -1, 64).Initializer("w", w, 64, 8).
		Node("MatMul", []string{"x", "w"}, []string{"h"}).Node("Relu", []string{"h"}, []string{"y"}).Output("y",
		onnxmodel.Float32, -1, 8)
	if err := g.Write(filepath.Join(dir, "models", "dense", "1", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sluice.yaml")
	text := `
version: 1
models: {repository: models}
device_types: [{name: cpu, price_per_hour: 1}]
workers: [{name: w, backend: {kind: onnx}}]
apps:
  - name: app
    slo: {latency: 100ms}
    variants: [{name: dense, accuracy: 0.9, max_batch: 4}]
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestProfileOperators predicts a real model, compares, keeps the operators, and writes a profile that others read.
func TestProfileOperators(t *testing.T) {
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skipf("not run without ONNX Runtime: %v", err)
	}
	file := modelWorld(t)
	dir := filepath.Dir(file)
	store, out := filepath.Join(dir, "operators.json"), filepath.Join(dir, "predicted.json")
	args := []string{"profile", "--operators", "-f", file, "--store", store, "--threads", "1,2", "--json"}
	code, text, errs := sluice(t, append(args, "--compare", "-o", out)...)
	if code != ExitOK {
		t.Fatalf("%d %s", code, errs)
	}
	var f measuring.Forecast
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if len(f.Predictions) != 3*2 || f.MeanError == nil || f.Offset != 0.1 {
		t.Fatalf("%+v", f)
	}
	for _, p := range f.Predictions {
		if p.Variant != "dense" || p.Sequential.Best <= 0 || p.Safe <= p.Sequential.Typical || p.Measured == nil ||
			p.Error == nil || p.New == 0 {
			t.Errorf("%+v", p)
		}
	}
	written, err := profiler.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(written.Points) != 3 || len(written.Loads) != 1 || written.Points[0].Mean != f.Predictions[0].Safe {
		t.Errorf("the profile is %+v", written)
	}
	if _, err := os.Stat("profile.json"); err == nil {
		t.Error("a profile was written that nobody asked for")
	}
	// The second time nothing is measured, and nothing whole is run.
	code, text, errs = sluice(t, args...)
	var again measuring.Forecast
	if err := json.Unmarshal([]byte(text), &again); code != ExitOK || err != nil {
		t.Fatalf("%d %v %s", code, err, errs)
	}
	for i, p := range again.Predictions {
		if p.New != 0 || p.Measured != nil || p.Sequential != f.Predictions[i].Sequential {
			t.Errorf("again: %+v", p)
		}
	}
	if code, text, _ = sluice(t, "profile", "--operators", "-f", file, "--store", store); code != ExitOK ||
		!strings.Contains(text, "with offset") || !strings.Contains(text, "dense") {
		t.Errorf("%d %s", code, text)
	}
	foreign := `{"format":"sluice-operators/1","host":{"cpu":"another","cores":1,"os":"x"},"operators":{}}`
	if err := os.WriteFile(store, []byte(foreign), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs = sluice(t, args...); code != ExitConfig ||
		!strings.Contains(errs, "times of one do not hold on the other") {
		t.Errorf("operators of another machine: %d %s", code, errs)
	}
}

// TestProfileOperatorsRefused checks the answers to what cannot be done.
func TestProfileOperatorsRefused(t *testing.T) {
	if code, _, errs := sluice(t, "profile", "--operators", "-f", fakeWorld(t), "--threads", "none"); code !=
		ExitUsage || !strings.Contains(errs, "--threads") {
		t.Errorf("%d %s", code, errs)
	}
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skipf("not run without ONNX Runtime: %v", err)
	}
	store := filepath.Join(t.TempDir(), "operators.json")
	if code, _, errs := sluice(t, "profile", "--operators", "-f", fakeWorld(t), "--store", store); code != ExitConfig ||
		!strings.Contains(errs, "only those can be predicted") {
		t.Errorf("%d %s", code, errs)
	}
}
