package test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// An ensemble of a Triton repository, imported and served: clients call it by the same name with the same tensors, and
// get the outputs of last steps and of others.
func TestImportedEnsembleAnswers(t *testing.T) {
	t.Parallel()
	needsONNX(t)
	dir := t.TempDir()
	double := onnxmodel.NewGraph("double").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 2).
		Node("Add", []string{"x", "x"}, []string{"y"}).Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 2)
	if err := double.Write(filepath.Join(dir, "models", "double", "1", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "models", "fourfold", "1"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "models", "fourfold"), "config.pbtxt", `platform: "ensemble" max_batch_size: 4
input { name: "ONE" data_type: TYPE_FP32 dims: 2 }
output [ { name: "TWO" data_type: TYPE_FP32 dims: 2 }, { name: "FOUR" data_type: TYPE_FP32 dims: 2 } ]
ensemble_scheduling {
  step { model_name: "double" model_version: -1 input_map { key: "x" value: "TWO" }
      output_map { key: "y" value: "FOUR" } }
  step { model_name: "double" model_version: -1 input_map { key: "x" value: "ONE" }
      output_map { key: "y" value: "TWO" } }
}`)
	// One that runs the other: "TWO" is also a tensor of its own.
	if err := os.MkdirAll(filepath.Join(dir, "models", "eightfold", "1"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "models", "eightfold"), "config.pbtxt", `platform: "ensemble" max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: 2 }
output [ { name: "EIGHT" data_type: TYPE_FP32 dims: 2 }, { name: "TWO" data_type: TYPE_FP32 dims: 2 } ]
ensemble_scheduling {
  step { model_name: "fourfold" model_version: -1 input_map { key: "ONE" value: "TWO" }
      output_map { key: "FOUR" value: "EIGHT" } }
  step { model_name: "double" model_version: -1 input_map { key: "x" value: "x" }
      output_map { key: "y" value: "TWO" } }
}`)
	file := filepath.Join(dir, "sluice.yaml")
	if status, out, errs := run(t.Context(), "import", "triton", filepath.Join(dir, "models"), "--out", file); status !=
		0 {
		t.Fatalf("import: %d %s %s", status, out, errs)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "sluice.yaml", "%s", strings.Replace(string(text), "# profiles:", "profiles:", 1))
	if status, out, errs := run(t.Context(), "profile", "-f", file, "-o", filepath.Join(dir, "profile.json"),
		"--max-batch", "1", "--max-time", "20ms"); status != 0 {
		t.Fatalf("profile: %d %s %s", status, out, errs)
	}
	c := serve(t, "-f", file, "--http", "127.0.0.1:0", "--grpc", "off", "--admin", "off")
	base := c.url()
	until(t, func() bool { return get(base+"/v2/health/ready") == 200 })
	resp, err := http.Post(base+"/v2/models/fourfold/infer", "application/json",
		strings.NewReader(`{"inputs":[{"name":"ONE","datatype":"FP32","shape":[2,2],"data":[1,2,3,4]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	for _, want := range []string{`"name":"TWO"`, `[2,4,6,8]`, `"name":"FOUR"`, `[4,8,12,16]`} {
		if resp.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%d %s lacks %s", resp.StatusCode, body, want)
		}
	}
	if code, got := postTo(t, base+"/v2/models/eightfold/infer",
		`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`); code != 200 ||
		!strings.Contains(got, `[2,4]`) || !strings.Contains(got, `[8,16]`) {
		t.Errorf("an ensemble in an ensemble: %d %s", code, got)
	}
	// A step is a model of its own for who calls it by its name, and the ensemble one in statistics.
	if code, got := postTo(t, base+"/v2/models/double/infer",
		`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`); code != 200 ||
		!strings.Contains(got, `[2,4]`) {
		t.Errorf("a step: %d %s", code, got)
	}
	if code, got := postTo(t, base+"/v2/models/fourfold/stats", ""); code != 405 {
		t.Errorf("POST of statistics: %d %s", code, got)
	}
	stats, err := http.Get(base + "/v2/models/fourfold/stats")
	if err != nil {
		t.Fatal(err)
	}
	defer stats.Body.Close()
	counted, _ := io.ReadAll(stats.Body)
	if !strings.HasPrefix(string(counted), `{"model_stats":[{"name":"fourfold","version":"1","last_inference":`) ||
		!strings.Contains(string(counted), `"inference_count":2,"execution_count":1,"inference_stats"`) ||
		!strings.Contains(string(counted), `{"name":"double","version":"1"`) {
		t.Errorf("statistics: %s", counted)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}
