package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/docs"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// Schemas are printed by name. A first configuration names the schema where it lies, and says how to get it where not.
func TestConfigSchema(t *testing.T) {
	for name, args := range map[string][]string{
		"sluice": {}, "workload": {"workload"}, "function": {"function"},
	} {
		want, err := docs.Schema(name)
		if err != nil {
			t.Fatal(err)
		}
		if code, out, errs := sluice(t, append([]string{"config", "schema"}, args...)...); code != 0 ||
			out != string(want) {
			t.Errorf("%s: %d, %d bytes, want %d; %s", name, code, len(out), len(want), errs)
		}
	}
	if code, _, errs := sluice(t, "config", "schema", "other"); code != ExitUsage ||
		!strings.Contains(errs, "workload") {
		t.Errorf("another name: %d %s", code, errs)
	}
	t.Chdir(t.TempDir())
	if err := onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic, 3).Write(filepath.Join("models", "echo", "1",
		"model.onnx")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("models", "echo", "1", "model.onnx")
	if code, _, errs := sluice(t, "config", "init", file); code != ExitUsage ||
		!strings.Contains(errs, "sluice serve --print-config "+file) {
		t.Errorf("a model file: %d %s", code, errs)
	}
	const line = "# yaml-language-server: $schema=sluice.schema.json\n"
	if code, out, errs := sluice(t, "config", "init", "models", "--no-measure"); code != 0 ||
		!strings.Contains(out, "sluice config schema > sluice.schema.json") || !strings.Contains(out, "\n#"+line) {
		t.Errorf("without a schema: %d %s%s", code, out, errs)
	}
	if err := os.WriteFile(schemaFile, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := sluice(t, "config", "init", "models", "--no-measure"); code != 0 ||
		!strings.HasPrefix(out, line) {
		t.Errorf("with a schema: %d %s%s", code, out, errs)
	}
}
