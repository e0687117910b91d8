package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/repository"
)

// Every example that is listed is written, is the same twice, and is a model or a repository that can be read.
func TestExamplesAreWritten(t *testing.T) {
	_, listed, _ := sluice(t, "example")
	dir := t.TempDir()
	for _, x := range examples() {
		if !strings.Contains(listed, "\n"+x.name+" ") {
			t.Errorf("%s is not listed in\n%s", x.name, listed)
		}
		to := filepath.Join(dir, x.name)
		code, out, errs := sluice(t, "example", x.name, to)
		if code != ExitOK {
			t.Fatalf("%s: %d %s", x.name, code, errs)
		}
		again := filepath.Join(dir, "again", x.name)
		sluice(t, "example", x.name, again)
		for path := range strings.Lines(out) {
			path = strings.TrimSpace(path)
			if _, err := onnxmodel.Read(path); err != nil {
				t.Errorf("%s: %v", x.name, err)
			}
			one, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			other, err := os.ReadFile(again + strings.TrimPrefix(path, to))
			if err != nil || !bytes.Equal(one, other) {
				t.Errorf("%s is not the same twice: %v", x.name, err)
			}
		}
	}
	found, err := repository.Open(filepath.Join(dir, "models"))
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	if names, err := found.Names(); err != nil || !slices.Equal(names, []string{"adder", "mobilenet"}) {
		t.Errorf("the repository holds %v, %v", names, err)
	}
}

// What is there is not replaced unasked, and then nothing else is written either.
func TestExampleKeepsWhatIsThere(t *testing.T) {
	to := filepath.Join(t.TempDir(), "models")
	kept := filepath.Join(to, "mobilenet", "1", "model.onnx")
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, errs := sluice(t, "example", "models", to)
	if code != ExitUsage || !strings.Contains(errs, kept) || !strings.Contains(errs, "--force") {
		t.Errorf("%d %s", code, errs)
	}
	if text, err := os.ReadFile(kept); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(to, "adder")); err == nil {
		t.Error("half of the example was written")
	}
	if code, _, errs := sluice(t, "example", "models", to, "--force"); code != ExitOK {
		t.Errorf("%d %s", code, errs)
	}
	if _, err := onnxmodel.Read(kept); err != nil {
		t.Error(err)
	}
	if code, _, errs := sluice(t, "example", "subtractor.onnx"); code != ExitUsage || !strings.Contains(errs, "lists") {
		t.Errorf("%d %s", code, errs)
	}
}
