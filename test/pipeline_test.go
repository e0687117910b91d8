package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// pipelineModels writes two models whose answers can be told in advance. The detector finds the four quarters of a
// picture of 8 x 8 pixels, each with its mean as score; the reader tells which of the 16 pixels of a patch is the
// brightest.
func pipelineModels(t *testing.T, dir string) {
	t.Helper()
	const n = onnxmodel.Symbolic
	put := func(name string, g *onnxmodel.Graph) {
		if err := g.Write(filepath.Join(dir, name, "1", "model.onnx")); err != nil {
			t.Fatal(err)
		}
	}
	d := onnxmodel.NewGraph("detector").Input("image", onnxmodel.Float32, n, 1, 8, 8)
	d.Initializer("quarters", []float32{0, 0, 4, 4, 4, 0, 8, 4, 0, 4, 4, 8, 4, 4, 8, 8}, 1, 4, 4)
	d.Initializer("nothing", []float32{0}, 1)
	d.InitializerInt64("row", []int64{-1, 4}, 2)
	d.InitializerInt64("column", []int64{-1, 4, 1}, 3)
	d.Node("AveragePool", []string{"image"}, []string{"means"}, onnxmodel.AttrInts("kernel_shape", 4, 4),
		onnxmodel.AttrInts("strides", 4, 4))
	d.Node("Reshape", []string{"means", "row"}, []string{"scores"})
	d.Node("Reshape", []string{"means", "column"}, []string{"columns"})
	d.Node("Mul", []string{"columns", "nothing"}, []string{"zeros"})
	d.Node("Add", []string{"quarters", "zeros"}, []string{"rects"}) // as many copies as there are pictures
	put("detector", d.Output("rects", onnxmodel.Float32, n, 4, 4).Output("scores", onnxmodel.Float32, n, 4))
	r := onnxmodel.NewGraph("reader").Input("patch", onnxmodel.Float32, n, 1, 4, 4)
	r.Node("Flatten", []string{"patch"}, []string{"flat"})
	r.Node("ArgMax", []string{"flat"}, []string{"label"}, onnxmodel.AttrInt("axis", 1),
		onnxmodel.AttrInt("keepdims", 0))
	put("reader", r.Output("label", onnxmodel.Int64, n))
}

// scene draws a picture. For each quarter that is lit: its brightness, and which of its pixels is twice as bright.
func scene(lit map[int][2]int) []float32 {
	out := make([]float32, 64)
	for q, l := range lit {
		for p := range 16 {
			y, x := q/2*4+p/4, q%2*4+p%4
			out[8*y+x] = float32(l[0])
			if p == l[1] {
				out[8*y+x] *= 2
			}
		}
	}
	return out
}

// A pipeline of models and functions over real ONNX Runtime and real sockets: what a detector finds is cut out and
// read, as many patches as there are; beside this, things are followed from picture to picture of a stream.
func TestPipelineOfModelsAndFunctions(t *testing.T) {
	needsONNX(t)
	dir := t.TempDir()
	pipelineModels(t, filepath.Join(dir, "models"))
	file := write(t, dir, "sluice.yaml", `version: 1
device_types: [{name: local, cores: 8}]
workers: [{name: here}]
models: {repository: models}
profiles: [profile.json]
apps:
  - name: scenes
    slo: {latency: 2s}
    stages:
      - name: detect
        variants: [{name: detector, max_batch: 4}]
        outputs: {rects: boxes}
        next: [{to: keep}]
      - name: keep
        function: nms
        with: {score: 0.5, iou: 0.4}
        next: [{to: cut, fan_out: 2, rows: boxes}, {to: follow}]
      - name: cut
        function: crop
        with: {height: 4, width: 4, layout: nchw}
        next: [{to: read}]
      - name: read
        variants: [{name: reader, max_batch: 4}]
        inputs: {patch: patches}
      - {name: follow, function: track}
`)
	status, out, errs := run(t.Context(), "profile", "-f", file, "-o", filepath.Join(dir, "profile.json"),
		"--max-batch", "2", "--max-time", "20ms")
	if status != 0 || strings.Count(out, "keep") < 2 || strings.Count(out, "detector") < 2 {
		t.Fatalf("profile: %d %s %s", status, out, errs)
	}
	c := serve(t, "-f", file, "--http", "127.0.0.1:0", "--grpc", "off", "--admin", "off")
	base := c.url()
	until(t, func() bool { return get(base+"/v2/health/ready") == 200 })

	ask := func(parameters string, scenes ...[]float32) map[string][]int {
		t.Helper()
		data, err := json.Marshal(slices.Concat(scenes...))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.Post(base+"/v2/models/scenes/infer", "application/json",
			strings.NewReader(fmt.Sprintf(
				`{"parameters":{%s},"inputs":[{"name":"image","datatype":"FP32","shape":[%d,1,8,8],"data":%s}]}`,
				parameters, len(scenes), data)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		var answer struct {
			Outputs []struct {
				Name string
				Data []int
			}
		}
		if err := json.Unmarshal(body, &answer); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d %s %v", resp.StatusCode, body, err)
		}
		got := make(map[string][]int)
		for _, o := range answer.Outputs {
			got[o.Name] = o.Data
		}
		return got
	}
	// The brightest quarter of a picture comes first; one that is too dark is not read.
	busy, quiet := scene(map[int][2]int{0: {1, 3}, 1: {5, 12}, 2: {3, 9}}), scene(map[int][2]int{3: {2, 15}})
	if got := ask("", busy, quiet); !slices.Equal(got["label"], []int{12, 9, 3, 15}) {
		t.Errorf("read %v", got)
	}
	// Nothing is found: nothing is read, and the answer has no rows.
	if got := ask("", scene(nil)); len(got["label"]) != 0 {
		t.Errorf("read %v in the dark", got)
	}
	// More than a batch of the reader holds.
	if got := ask("", busy, busy, busy, busy); len(got["label"]) != 12 ||
		!slices.Equal(got["label"][9:], []int{12, 9, 3}) {
		t.Errorf("read %v", got)
	}
	// In a stream things keep their ids, whatever the order in which they are found; in another stream they have their
	// own.
	first, then := scene(map[int][2]int{0: {5, 3}, 3: {1, 4}}), scene(map[int][2]int{0: {1, 3}, 3: {5, 4}})
	for k, want := range [][]int{{1, 2}, {2, 1}} {
		if got := ask(fmt.Sprintf(`"sequence_id":7,"sequence_start":%v`, k == 0),
			[][]float32{first, then}[k]); !slices.Equal(got["ids"], want) {
			t.Errorf("picture %d: ids %v, want %v", k, got["ids"], want)
		}
	}
	if got := ask(`"sequence_id":8,"sequence_start":true`, then); !slices.Equal(got["ids"], []int{1, 2}) {
		t.Errorf("another stream: ids %v", got["ids"])
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}
