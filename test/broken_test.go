package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// A model that the runtime cannot load does not keep the others from being served. It is not ready, and says why in the
// index, in metadata and to who calls it; the server is ready unless readiness is strict.
func TestAModelThatFailsToLoadLeavesTheOthers(t *testing.T) {
	needsONNX(t)
	dir := t.TempDir()
	if err := onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic, 2).Write(
		filepath.Join(dir, "models", "good", "1", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	unknown := onnxmodel.NewGraph("bad").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 2).
		Node("NoSuchOperator", []string{"x"}, []string{"y"}).Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 2)
	if err := unknown.Write(filepath.Join(dir, "models", "bad", "1", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sluice.yaml"), []byte(`version: 1
device_types: [{name: local, cores: 1}]
workers: [{name: here, device_type: local, backend: {kind: onnx}}]
models: {repository: models}
server: {public_metrics: true}
apps:
  - {name: good, slo: {latency: 1s}, variants: [{name: good, max_batch: 1}]}
  - {name: bad, slo: {latency: 1s}, variants: [{name: bad, max_batch: 1}]}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, strict := range []bool{false, true} {
		args := []string{
			"-f", filepath.Join(dir, "sluice.yaml"), "--http", "127.0.0.1:0", "--grpc", "off", "--admin", "off",
		}
		if strict {
			args = append(args, "--strict-readiness")
		}
		c := serve(t, args...)
		base := c.url()
		until(t, func() bool { return get(base+"/v2/models/good/ready") == 200 })
		if got := get(base + "/v2/health/ready"); (got == 200) == strict {
			t.Errorf("strict %v: ready is %d", strict, got)
		}
		const one = `{"inputs":[{"name":"NAME","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`
		if code, got := postTo(t, base+"/v2/models/good/infer", strings.Replace(one, "NAME", "input", 1)); code != 200 {
			t.Errorf("the good one: %d %s", code, got)
		}
		if code, got := postTo(t, base+"/v2/models/bad/infer", strings.Replace(one, "NAME", "x", 1)); code != 503 ||
			!strings.Contains(got, "NoSuchOperator") {
			t.Errorf("the bad one: %d %s", code, got)
		}
		if _, got := bodyOf(t, base+"/metrics"); !strings.Contains(got,
			`sluice_model_load_failed{model="bad",reason="runtime",version="1"} 1`) {
			t.Errorf("metrics do not say that the bad one failed: %s", got)
		}
		if code, got := bodyOf(t, base+"/v2/models/bad"); code != 503 || !strings.Contains(got, "NoSuchOperator") {
			t.Errorf("its metadata: %d %s", code, got)
		}
		if code, got := bodyOf(t, base+"/v2/models/bad/ready"); code != 503 {
			t.Errorf("its readiness: %d %s", code, got)
		}
		if code, got := postTo(t, base+"/v2/repository/index", ""); code != 200 ||
			!strings.Contains(got, `{"name":"bad","version":"1","state":"UNAVAILABLE","reason":"`) ||
			!strings.Contains(got, "NoSuchOperator") || !strings.Contains(got,
			`{"name":"good","version":"1","state":"READY"}`) {
			t.Errorf("index: %d %s", code, got)
		}
		if code, got := bodyOf(t, base+"/v2/models/stats"); code != 200 || !strings.Contains(got, `"good"`) {
			t.Errorf("statistics: %d %s", code, got)
		}
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

// A start of a folder reads it twice, with objectives the second time, and says once what it leaves out.
func TestWhatIsNotServedIsSaidOnce(t *testing.T) {
	needsONNX(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	adding(t, dir, "good", 1, 1)
	unknown := onnxmodel.NewGraph("bad").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 2).
		Node("NoSuchOperator", []string{"x"}, []string{"y"}).Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 2)
	if err := unknown.Write(filepath.Join(dir, "bad", "1", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start finds the profile of the first
		status, _, errs := run(t.Context(), "serve", dir, "--print-config")
		if n := strings.Count(errs, "is not served"); status != 0 || n != 1 {
			t.Errorf("status %d, said %d times:\n%s", status, n, errs)
		}
	}
}
