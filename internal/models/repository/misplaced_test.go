package repository

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder that is no repository is told apart by what lies in it, and the words say what to name instead.
func TestMisplaced(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{
		"flat/a.onnx", "models/m/1/model.onnx", "other/x/1/net.onnx", "texts/readme.md", "named/x/1/weights.bin",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{
		"flat":       "a.onnx lies in it without a folder: want NAME/1/model.onnx, such as a/1/model.onnx",
		"models/m":   "one model, with its versions: name the folder above, " + filepath.Join(root, "models"),
		"models/m/1": "one version of a model: name the folder of all models, " + filepath.Join(root, "models"),
		"texts":      "no model lies in it: want NAME/1/model.onnx",
		"models":     "",
	} {
		r, err := Open(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Misplaced(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
		_ = r.Close()
	}
	for dir, want := range map[string]string{
		"other": `; net.onnx lies there: rename it, or write default_model_filename: "net.onnx" into config.pbtxt`,
		"named": "model.onnx: not found",
	} {
		r, err := Open(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Model("x"); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
		_ = r.Close()
	}
}
