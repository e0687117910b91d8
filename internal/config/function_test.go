package config

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestTheFunctionTemplate(t *testing.T) {
	f, err := ParseFunction(FunctionTemplate(), filepath.Join("dir", "fn.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Function{
		Name: "classify", Model: filepath.Join("dir", "classify.onnx"), SLO: SLO{
			Latency: Duration(100 * time.Millisecond), Percentile: 99,
		}, ColdWait: Duration(30 * time.Second),
	}); !reflect.DeepEqual(*f, want) {
		t.Errorf("%+v", *f)
	}
	all := regexp.MustCompile(`(?m)^#: `).ReplaceAll(FunctionTemplate(), nil)
	all = bytes.Replace(all, []byte(".onnx"), []byte(".py"), 1) // a class belongs to Python
	if f, err = ParseFunction(all, "fn.yaml"); err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(*f)
	for k := range v.NumField() {
		if v.Field(k).IsZero() {
			t.Errorf("%s is not in the template", v.Type().Field(k).Name)
		}
	}
}

func TestBadFunctions(t *testing.T) {
	good := "name: f\nmodel: m.onnx\nslo: {latency: 50ms}\n"
	for text, want := range map[string]string{
		"":                           "empty",
		"[]":                         "not a mapping",
		good + "batch: 3\n":          "fn.yaml:4: batch: unknown key",
		good + "max_bath: 3\n":       "max_batch",
		good + "name: g\n":           "fn.yaml:4: name: given twice",
		good + "max_batch: 0\n":      "fn.yaml:4: max_batch: is 0",
		good + "max_batch: 1.5\n":    "whole number",
		good + "min_instances: -1\n": "min_instances: is -1",
		good + "min_instances: 3\nmax_instances: 2\n":            "less than min_instances",
		good + "cold_wait: -1s\n":                                "negative",
		good + "labels: {a: \"\\x01\"}\n":                        "control characters",
		"model: m.onnx\nslo: {latency: 50ms}":                    "name: is missing",
		"name: ../x\nmodel: m\nslo: {latency: 1s}":               "fn.yaml:1: name",
		"name: f\nslo: {latency: 50ms}":                          "model: is missing",
		"name: f\nmodel: m.onnx":                                 "slo.latency: is missing",
		"name: f\nmodel: m\nslo: {latency: 0s}":                  "more than 0",
		"name: f\nmodel: m\nslo: {latency: 1s, percentile: 101}": "percentile",
	} {
		if _, err := ParseFunction([]byte(text), "fn.yaml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
}

// A file without apps is right when it names a store, and wrong otherwise.
func TestAppsOrStore(t *testing.T) {
	text := "version: 1\ndevice_types: [{name: d}]\nworkers: [{name: w}]\n"
	if _, err := Parse([]byte(text), "s.yaml"); err == nil || !strings.Contains(err.Error(), "store") {
		t.Error(err)
	}
	f, err := Parse([]byte(text+"store: data\n"), "s.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if f.Server.AdminToken != filepath.Join("data", "admin.token") {
		t.Errorf("the token lies in %q", f.Server.AdminToken)
	}
	w, err := f.Resolve()
	if err != nil || len(w.Spec.Apps) != 0 {
		t.Fatalf("%v", err)
	}
	text = strings.Replace(text, "{name: w}", "{name: w, backend: {kind: openinference, address: \"a:1\"}}", 1)
	if _, err := Parse([]byte(text+"store: data\n"), "s.yaml"); err == nil ||
		!strings.Contains(err.Error(), "load_models: must be true") {
		t.Error(err)
	}
	text = strings.Replace(text, "kind: openinference", "load_models: true, kind: openinference", 1)
	if _, err := Parse([]byte(text+"store: data\n"), "s.yaml"); err != nil {
		t.Error(err)
	}
}

// An option of a function may be what a file has. The file is looked for with the models, and what it has is checked.
func TestOptionsFromFiles(t *testing.T) {
	dir := t.TempDir()
	text := `
version: 1
device_types: [{name: d}]
workers: [{name: w, backend: {kind: fake}}]
apps:
  - name: a
    slo: {latency: 1s}
    inputs: [{name: scores, datatype: FP32, shape: [-1, 4, 3]}]
    stages:
      - {name: read, function: ctc, with: {alphabet: "@keys.txt"}, next: [{to: pass}]}
      - {name: pass, function: identity, inputs: {tensor: text}}
`
	f, err := Parse([]byte(text), filepath.Join(dir, "s.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Resolve(); err == nil || !strings.Contains(err.Error(), "with.alphabet: cannot be read") {
		t.Errorf("without the file: %v", err)
	}
	keys := filepath.Join(dir, "keys.txt")
	for content, want := range map[string]string{"\xff": "is no UTF-8", "ab": ""} {
		if err := os.WriteFile(keys, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := f.Resolve()
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want an error with %q", content, err, want)
		case want == "" && err != nil:
			t.Errorf("%q: %v", content, err)
		case want == "" && w.Variants[0].With["alphabet"] != content:
			t.Errorf("the option is %q, want %q", w.Variants[0].With["alphabet"], content)
		}
	}
}
