package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

func TestImportTriton(t *testing.T) {
	root := t.TempDir()
	models := filepath.Join(root, "models")
	for _, name := range []string{"a", "b"} {
		if err := onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic,
			3).Write(filepath.Join(models, name, "1", "model.onnx")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(models, "both"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(models, "both", "config.pbtxt"),
		[]byte(`platform: "ensemble" max_batch_size: 64 response_cache {}
input { name: "IN" data_type: TYPE_FP32 dims: 3 } output { name: "OUT" data_type: TYPE_FP32 dims: 3 }
ensemble_scheduling { step { model_name: "a" input_map { key: "input" value: "IN" }
    output_map { key: "output" value: "MID" } }
step { model_name: "b" input_map { key: "input" value: "MID" } output_map { key: "output" value: "OUT" } } }`),
		0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(root, "sluice.yaml")
	code, stdout, stderr := sluice(t, "import", "triton", models, "--out", out)
	if code != 0 || !strings.Contains(stdout, "written to "+out) ||
		!strings.Contains(stderr, "response_cache (line 1) is not read") {
		t.Fatalf("%d %s %s", code, stdout, stderr)
	}
	if code, stdout, stderr := sluice(t, "config", "check", out); code != 0 ||
		!strings.Contains(stdout, "3 apps, 4 variants") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
	if code, _, stderr := sluice(t, "import", "triton", models, "--out", out); code != ExitConfig ||
		!strings.Contains(stderr, "is there already") {
		t.Errorf("%d %s", code, stderr)
	}
	if code, stdout, _ := sluice(t, "import", "triton", models); code != 0 ||
		!strings.Contains(stdout, "repository: "+models) {
		t.Errorf("%d %s", code, stdout)
	}
	if code, _, _ := sluice(t, "import", models); code != ExitUsage {
		t.Errorf("%d", code)
	}
	// init goes on without an ensemble, and says so on the terminal and in the file.
	if code, stdout, stderr := sluice(t, "config", "init", "--no-measure", models); code != 0 ||
		!strings.Contains(stderr, "`sluice import triton` makes an app of it") ||
		!strings.Contains(stdout, "`sluice import triton` makes an app of it") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
}
