package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// optionalModel writes a model x+number whose constant number is an input as well.
func optionalModel(t *testing.T, repository, name, config string) {
	t.Helper()
	path := adding(t, repository, name, 1, 1)
	m, err := onnxmodel.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	one := onnxmodel.NewGraph("one").Input("number", onnxmodel.Float32, 1).Model(onnxmodel.DefaultOpset,
		onnxmodel.DefaultIR)
	m.Graph.Input = append(m.Graph.Input, one.Graph.Input[0])
	if err := onnxmodel.Write(path, m); err != nil {
		t.Fatal(err)
	}
	if config == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(repository, name, "config.pbtxt"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A request may replace a constant that the model file has as an input as well, for all its items together.
func TestConstantsThatAreInputsMayBeGiven(t *testing.T) {
	needsONNX(t)
	repository := t.TempDir()
	optionalModel(t, repository, "plain", "")
	optionalModel(t, repository, "listed", `max_batch_size: 2
input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] }
input { name: "number" data_type: TYPE_FP32 dims: [ 1 ] optional: true }
`)
	base := controlled(t, repository).url()
	const number = `,{"name":"number","datatype":"FP32","shape":[1],"data":[10]}`
	for _, model := range []string{"plain", "listed"} {
		if got := added(t, base, model); got != "2" {
			t.Errorf("%s without: %s", model, got)
		}
		for inputs, want := range map[string]string{
			`{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}` + number: `"data":[11,12]`,
			`{"name":"number","datatype":"FP32","shape":[1],"data":[20]},` +
				`{"name":"x","datatype":"FP32","shape":[2,2],"data":[1,2,3,4]}`: `"data":[21,22,23,24]`,
			`{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]},` +
				`{"name":"number","datatype":"FP32","shape":[2],"data":[1,2]}`: `shape is [2], model`,
			strings.TrimPrefix(number, ","): `missing required input(s) ['x']`,
		} {
			_, got := postTo(t, base+"/v2/models/"+model+"/infer", `{"inputs":[`+inputs+`]}`)
			if !strings.Contains(got, want) {
				t.Errorf("%s, %s: %s, want %s", model, inputs, got, want)
			}
		}
	}
}

// A model may have no inputs, and then its requests have none.
func TestModelsWithoutInputsAreServed(t *testing.T) {
	needsONNX(t)
	repository := t.TempDir()
	g := onnxmodel.NewGraph("two").Initializer("k", []float32{1, 2}, 2).Node("Neg", []string{"k"}, []string{"y"}).
		Output("y", onnxmodel.Float32, 2)
	if err := g.Write(filepath.Join(repository, "two", "1", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	adding(t, repository, "one", 1, 1)
	base := controlled(t, repository, "--model-control-mode", "explicit", "--load-model", "one").url()
	controls(t, base, "two", "load", "{}") // as a model that comes later
	for _, body := range []string{`{"inputs":[]}`, `{"outputs":[{"name":"y"}]}`} {
		if code, got := postTo(t, base+"/v2/models/two/infer", body); code != 200 ||
			!strings.Contains(got, `"data":[-1,-2]`) {
			t.Errorf("%s: %d %s", body, code, got)
		}
	}
	for _, c := range []struct{ model, body, want string }{
		{"one", `{"inputs":[]}`, "missing required input(s) ['x']"}, {"two", onesToAdd, "which takes no inputs"},
	} {
		code, got := postTo(t, base+"/v2/models/"+c.model+"/infer", c.body)
		if code != 400 || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d %s, want %s", c.model, code, got, c.want)
		}
	}
}
