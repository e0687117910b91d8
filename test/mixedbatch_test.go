package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// Ensembles batch or not, whatever their steps do: a tensor without a batch dimension is one item of a step that
// batches, and one with a batch dimension goes to a step that has none as a whole.
func TestEnsemblesBatchAndTheirStepsDoNotOrTheOtherWayRound(t *testing.T) {
	needsONNX(t)
	dir := t.TempDir()
	put := func(name, config string, g *onnxmodel.Graph) {
		if err := os.MkdirAll(filepath.Join(dir, name, "1"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), "config.pbtxt", "%s", config)
		if g == nil {
			return
		}
		if err := g.Write(filepath.Join(dir, name, "1", "model.onnx")); err != nil {
			t.Fatal(err)
		}
	}
	model := func(op string, shape ...int64) *onnxmodel.Graph {
		in := []string{"x"}
		if op == "Add" {
			in = []string{"x", "x"}
		}
		return onnxmodel.NewGraph("g").Input("x", onnxmodel.Float32, shape...).Node(op, in, []string{"y"}).
			Output("y", onnxmodel.Float32, shape...)
	}
	tensors := func(most int, in, out, dims string) string {
		return fmt.Sprintf("max_batch_size: %d input { name: %q data_type: TYPE_FP32 dims: [ %s ] }\n"+
			"output { name: %q data_type: TYPE_FP32 dims: [ %s ] }\n", most, in, dims, out, dims)
	}
	put("double", tensors(4, "x", "y", "2"), model("Add", -1, 2))
	put("table", tensors(0, "x", "y", "-1, -1"), model("Neg", -1, -1)) // no batch dimension
	put("row", tensors(0, "x", "y", "2"), model("Neg", 2))
	chain := func(name string, most int, dims string, steps ...string) {
		put(name, `platform: "ensemble" `+tensors(most, "IN", "OUT", dims)+chained("IN", "OUT", steps), nil)
	}
	chain("one", 0, "2", "double")
	chain("two", 0, "2", "double", "double")
	chain("given", 0, "-1, 2", "double", "double")
	chain("to_table", 8, "2", "double", "table")
	chain("from_table", 4, "2", "table", "double", "table")
	chain("plain_table", 0, "-1, 2", "table", "double")
	chain("through_row", 0, "2", "double", "row", "double")
	chain("row_alone", 3, "2", "row")

	base := serve(t, dir, "--http", "127.0.0.1:0", "--grpc", "off", "--admin", "off").url()
	until(t, func() bool { return get(base+"/v2/health/ready") == 200 })
	const one, three = `[1,2]`, `[1,2,3,4,5,6]`
	for _, c := range []struct {
		model, shape, data string
		code               int
		want               []string
	}{
		{"one", "[2]", one, 200, []string{`"shape":[2]`, `[2,4]`}},
		{"one", "[1,2]", one, 400, []string{`shape is [1,2], model \"one\" takes [2]`}},
		{"two", "[2]", one, 200, []string{`"shape":[2]`, `[4,8]`}},
		{"given", "[3,2]", three, 200, []string{`"shape":[3,2]`, `[4,8,12,16,20,24]`}},
		{"given", "[5,2]", `[1,2,3,4,5,6,7,8,9,10]`, 400, []string{`at most 4`}},
		{"to_table", "[3,2]", three, 200, []string{`"shape":[3,2]`, `[-2,-4,-6,-8,-10,-12]`}},
		{"to_table", "[5,2]", `[1,2,3,4,5,6,7,8,9,10]`, 400, []string{`from 1 to 4, the model's max_batch_size`}},
		{"from_table", "[3,2]", three, 200, []string{`"shape":[3,2]`, `[2,4,6,8,10,12]`}},
		{"from_table", "[5,2]", `[1,2,3,4,5,6,7,8,9,10]`, 400, []string{`at most 4`}},
		{"plain_table", "[3,2]", three, 200, []string{`"shape":[3,2]`, `[-2,-4,-6,-8,-10,-12]`}},
		{"through_row", "[2]", one, 200, []string{`"shape":[2]`, `[-4,-8]`}},
		{"row_alone", "[1,2]", one, 200, []string{`"shape":[1,2]`, `[-1,-2]`}},
		{"row_alone", "[3,2]", three, 400, []string{`only a batch of 1`}},
	} {
		code, got := postTo(t, base+"/v2/models/"+c.model+"/infer",
			`{"inputs":[{"name":"IN","datatype":"FP32","shape":`+c.shape+`,"data":`+c.data+`}]}`)
		for _, want := range c.want {
			if code != c.code || !strings.Contains(got, want) {
				t.Errorf("%s %s: %d %s, want %d with %s", c.model, c.shape, code, got, c.code, want)
			}
		}
	}
	for path, want := range map[string]string{
		"given":             `"inputs":[{"name":"IN","datatype":"FP32","shape":[-1,2]}]`,
		"given/config":      `"max_batch_size":0`,
		"one":               `"inputs":[{"name":"IN","datatype":"FP32","shape":[2]}]`,
		"to_table/config":   `"max_batch_size":8`,
		"to_table":          `"outputs":[{"name":"OUT","datatype":"FP32","shape":[-1,2]}]`,
		"from_table/config": `"dims":[2]`,
	} {
		if _, got := bodyOf(t, base+"/v2/models/"+path); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
