package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pythonFile is a file with one variant in Python, and a place for settings of it and of its worker.
const pythonFile = `version: 1
device_types: [{name: cpu}]
workers: [{name: w, backend: {KIND}}]
apps:
  - name: a
    slo: {latency: 1s}
    variants: [{VARIANT}]
`

func TestPythonVariants(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.py"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ kind, variant, want string }{
		{"kind: python", `python: "m.py:Model"`, ""},
		{"kind: onnx", "python: m.py", ""},
		{"kind: fake", "python: none.py", ""}, // fake workers run nothing
		{"kind: python, process_memory: 1GiB, run_timeout: 5s, processes: 2, environment: {A: b}", "python: m.py", ""},
		{"kind: python", "python: none.py", "there is no file"},
		{"kind: python", "python: m.py, model: m", "give either"},
		{"kind: python", "python: m.py, version: 1", "version"},
		{"kind: python", "name: m", "Python alone"},
		{"kind: onnx", "name: m, options: {a: b}", "options"},
		{"kind: fake, processes: 2", "python: m.py", "processes"},
		{"kind: python, processes: 0", "python: m.py", "processes"},
		{"kind: python, spare_processes: 17", "python: m.py", "spare_processes"},
		{"kind: python, spare_processes: 1", "python: m.py", ""},
		{"kind: python, interpreter: a, virtual_environment: b", "python: m.py", "either"},
		{`kind: python, environment: {"A=B": c}`, "python: m.py", "environment"},
		{"kind: python, process_memory: 3", "python: m.py", "process_memory"},
		{"kind: python, run_timeout: 0s", "python: m.py", "run_timeout"},
	} {
		text := strings.NewReplacer("KIND", x.kind, "VARIANT", x.variant).Replace(pythonFile)
		f, err := Parse([]byte(text), filepath.Join(dir, "sluice.yaml"))
		var w *Resolved
		if err == nil {
			w, err = f.Resolve()
		}
		if x.want == "" {
			if err != nil || w.Variants[0].Python == nil || w.Spec.Variants[0].MaxBatch != 64 {
				t.Errorf("%s, %s: %v", x.kind, x.variant, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s, %s: %v, want %q", x.kind, x.variant, err, x.want)
		}
	}
}

func TestPythonNames(t *testing.T) {
	for source, want := range map[string]string{
		"a/app.py": "app", "a/app.py:Model": "app", "app.py:Large": "Large", "net.pt": "net", "folder/bert": "bert",
	} {
		if got := pythonName(source); got != want {
			t.Errorf("%s is called %s, want %s", source, got, want)
		}
	}
	app := PythonApp{Source: "/x/app.py:Net", MaxBatch: 4}
	text, err := app.File()
	if err != nil || app.Name() != "Net" || !strings.Contains(string(text), "/x/app.py:Net") {
		t.Errorf("%v\n%s", err, text)
	}
}
