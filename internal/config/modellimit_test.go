package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// manyModels is a repository of n models, which are one file, and of an ensemble of the first.
func manyModels(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, config string) {
		if err := os.MkdirAll(filepath.Join(dir, name, "1"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "config.pbtxt"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for k := range n {
		name := fmt.Sprint("m", k)
		put(name, "max_batch_size: 4")
		g := onnxmodel.NewGraph("g").Input("x", onnxmodel.Float32, -1, 4).Node("Neg", []string{"x"}, []string{"y"})
		g.Output("y", onnxmodel.Float32, -1, 4)
		if err := g.Write(filepath.Join(dir, name, "1", "model.onnx")); err != nil {
			t.Fatal(err)
		}
	}
	put("whole", `platform: "ensemble" max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
ensemble_scheduling { step { model_name: "m0" input_map { key: "x" value: "x" }
  output_map { key: "y" value: "y" } } }`)
	return dir
}

// A repository with more models than models.limit is refused, with the words that say how to mend it. What counts is
// what is to be served: under explicit control the models to begin with, and for one model that alone.
func TestModelLimit(t *testing.T) {
	dir := manyModels(t, 4)
	apps := func(o Importing) string {
		text, _, err := ImportTriton(dir, filepath.Join(dir, "sluice.yaml"), o)
		if err != nil {
			return err.Error()
		}
		f, err := Parse(text, filepath.Join(dir, "sluice.yaml"))
		if err != nil {
			return err.Error()
		}
		var names []string
		for _, a := range f.Apps {
			names = append(names, a.Name)
		}
		return fmt.Sprint(names, f.Models.Limit)
	}
	for _, c := range []struct {
		name string
		o    Importing
		want string
	}{
		{"as many as allowed", Importing{Models: Models{Limit: 5}}, "[whole m0 m1 m2 m3] 5"},
		{"one too many", Importing{Models: Models{Limit: 4}}, "are 5 models, more than models.limit, 4: raise it"},
		{"one alone", Importing{Models: Models{Limit: 4}, Only: "m1"}, "[m1] 4"},
		{
			"to begin with", Importing{Models: Models{Limit: 2, Control: ControlExplicit, Load: []string{"m3"}}},
			"[m3] 2",
		},
		{
			"with what it is made of",
			Importing{Models: Models{Limit: 2, Control: ControlExplicit, Load: []string{"whole"}}}, "[whole m0] 2",
		},
		{
			"with what it is made of, too many",
			Importing{Models: Models{Limit: 2, Control: ControlExplicit, Load: []string{"whole", "m2"}}},
			"are 3 models, more than models.limit, 2",
		},
		{
			"all", Importing{Models: Models{Limit: 4, Control: ControlExplicit, Load: []string{AllModels}}},
			"are 5 models, more than models.limit, 4",
		},
	} {
		if got := apps(c.o); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// The limits have bounds.
func TestLimitsOfNumbersOfModels(t *testing.T) {
	for _, line := range []string{
		"models: {repository: m, limit: 0}", "models: {repository: m, limit: 100001}", "telemetry: {metrics_apps: 0}",
		"telemetry: {metrics_apps: 100001}",
	} {
		_, err := Parse([]byte("version: 1\n"+line+"\n"), "sluice.yaml")
		if err == nil || !strings.Contains(err.Error(), "want 1 to 100000") {
			t.Errorf("%s: %v", line, err)
		}
	}
}
