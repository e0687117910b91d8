package test

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

var curlLine = regexp.MustCompile(`curl -s (http://\S+/infer) -d '(.*)'`)

// A model file is served with nothing written, and the call that the banner shows is answered. So is `sluice infer`.
func TestAModelFileIsServedWithNothingWritten(t *testing.T) {
	needsONNX(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "twice.onnx")
	const n = onnxmodel.Symbolic
	if err := onnxmodel.NewGraph("twice").Input("picture", onnxmodel.Float32, n, 3, 2, 2).
		Node("Add", []string{"picture", "picture"}, []string{"sum"}).
		Output("sum", onnxmodel.Float32, n, 3, 2, 2).Write(file); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := run(t.Context(), "serve", file, "--print-config"); status != 0 ||
		!strings.Contains(out, "- name: twice\n") || !strings.Contains(out, "proposed: true") {
		t.Fatalf("--print-config: %d %s %s", status, out, errs)
	}
	c := serve(t, file, "--http", "127.0.0.1:0", "--grpc", "off", "--admin", "off")
	until(t, func() bool { return get(c.url()+"/v2/health/ready") == 200 })
	said := c.said.String()
	call := curlLine.FindStringSubmatch(said)
	if call == nil {
		t.Fatalf("the banner shows no call:\n%s", said)
	}
	if code, got := postTo(t, call[1], call[2]); code != 200 || !strings.Contains(got, `"name":"sum"`) {
		t.Errorf("%s: %d %s", call[0], code, got)
	}
	white := image.NewGray(image.Rect(0, 0, 8, 8))
	for k := range white.Pix {
		white.SetGray(k%8, k/8, color.Gray{Y: 255})
	}
	path := filepath.Join(t.TempDir(), "white.png")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(f, white); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		"@" + path: `"data":[2,2,2,2,2,2,2,2,2,2,2,2]`,
		"[[[[1,2],[3,4]],[[0,0],[0,0]],[[0,0],[0,0]]]]": `"data":[2,4,6,8,0,0,0,0,0,0,0,0]`,
	} {
		status, out, errs := run(t.Context(), "infer", "twice", "--url", c.url(), "--input", "picture="+value)
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("infer %s: %d %s %s", value, status, out, errs)
		}
	}
	if status, _, errs := run(t.Context(), "infer", "none", "--url", c.url()); status == 0 ||
		!strings.Contains(errs, "unknown model") {
		t.Errorf("infer of no app: %d %s", status, errs)
	}
}

// A model gives more than an answer takes, as networks do that were exported with all their layers' outputs. The call
// that the banner shows works, what is too large says how to ask for less, and an output may go into a file.
func TestAModelOfManyOutputs(t *testing.T) {
	needsONNX(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	file := filepath.Join(dir, "layers.onnx")
	const n = onnxmodel.Symbolic
	if err := onnxmodel.NewGraph("layers").Input("x", onnxmodel.Float32, n, 1, 8, 8).
		Node("Sigmoid", []string{"x"}, []string{"mask"}).Node("Add", []string{"x", "x"}, []string{"other"}).
		Output("mask", onnxmodel.Float32, n, 1, 8, 8).Output("other", onnxmodel.Float32, n, 1, 8, 8).
		Write(file); err != nil {
		t.Fatal(err)
	}
	c := serve(t, file, "--http", "127.0.0.1:0", "--grpc", "off", "--admin", "off", "--output-limit", "400B")
	until(t, func() bool { return get(c.url()+"/v2/health/ready") == 200 })
	call := regexp.MustCompile(`sluice (infer layers .*)`).FindStringSubmatch(c.said.String())
	if call == nil {
		t.Fatalf("the banner shows no call:\n%s", c.said.String())
	}
	if status, out, errs := run(t.Context(), strings.Fields(call[1])...); status != 0 ||
		!strings.Contains(out, `"name":"mask"`) || strings.Contains(out, "other") {
		t.Errorf("%s: %d %s %s", call[0], status, out, errs)
	}
	if status, _, errs := run(t.Context(), "infer", "layers", "--url", c.url()); status == 0 ||
		!strings.Contains(errs, "Name one with --output: mask, other") {
		t.Errorf("all of them: %d %s", status, errs)
	}
	if status, _, errs := run(t.Context(), "infer", "layers", "--url", c.url(), "--output", "none"); status == 0 ||
		!strings.Contains(errs, "there are mask, other") {
		t.Errorf("none of them: %d %s", status, errs)
	}
	if status, out, errs := run(t.Context(), "load", "-u", c.url(), "--app", "layers", "--slo", "1s",
		"--request-rate-range", "20", "--duration", "1s", "--output", "mask", "--json"); status != 0 ||
		!strings.Contains(out, `"failed": 0`) {
		t.Errorf("load: %d %s %s", status, out, errs)
	}
	picture := filepath.Join(dir, "mask.png")
	status, out, errs := run(t.Context(), "infer", "layers", "--url", c.url(), "--output", "mask="+picture)
	if status != 0 || !strings.Contains(out, "mask: FP32 [1,1,8,8] is in "+picture) {
		t.Errorf("into a file: %d %s %s", status, out, errs)
	}
	f, err := os.Open(picture)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil || img.Bounds().Dx() != 8 || color.GrayModel.Convert(img.At(3, 3)) != (color.Gray{Y: 128}) {
		t.Errorf("%v %v", img, err)
	}
}

// A repository is served as it lies: versions side by side, a model that is told of sequences, what clients need to
// know of its configuration. A model that cannot be served is named and left out.
func TestARepositoryIsServedAsItLies(t *testing.T) {
	needsONNX(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root := t.TempDir()
	const n = onnxmodel.Symbolic
	put := func(model, version string, g *onnxmodel.Graph) {
		if err := g.Write(filepath.Join(root, model, version, "model.onnx")); err != nil {
			t.Fatal(err)
		}
	}
	put("sign", "1", onnxmodel.NewGraph("g").Input("x", onnxmodel.Float32, n, 2).
		Node("Neg", []string{"x"}, []string{"y"}).Output("y", onnxmodel.Float32, n, 2))
	put("sign", "3", onnxmodel.NewGraph("g").Input("x", onnxmodel.Float32, n, 2).
		Node("Abs", []string{"x"}, []string{"y"}).Output("y", onnxmodel.Float32, n, 2))
	write(t, filepath.Join(root, "sign"), "config.pbtxt", `max_batch_size: 4 version_policy: { all {} }
input { name: "x" data_type: TYPE_FP32 dims: 2 }
output { name: "y" data_type: TYPE_FP32 dims: 2 label_filename: "labels.txt" }
parameters { key: "k" value: { string_value: "v" } }`)
	write(t, filepath.Join(root, "sign"), "labels.txt", "left\nright\n")
	put("seq", "1", onnxmodel.NewGraph("g").Input("x", onnxmodel.Int32, n, 1).Input("START", onnxmodel.Int32, n, 1).
		Node("Add", []string{"x", "START"}, []string{"y"}).Output("y", onnxmodel.Int32, n, 1))
	write(t, filepath.Join(root, "seq"), "config.pbtxt", `max_batch_size: 4
input { name: "x" data_type: TYPE_INT32 dims: 1 }
output { name: "y" data_type: TYPE_INT32 dims: 1 }
sequence_batching { control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0,
	1 ] } } }`)
	// Zeros are no shape that this model can give its input.
	put("shaped", "1", onnxmodel.NewGraph("g").Input("x", onnxmodel.Float32, 6).Input("shape", onnxmodel.Int64, 2).
		Node("Reshape", []string{"x", "shape"}, []string{"y"}).Output("y", onnxmodel.Float32, n, n))
	write(t, filepath.Join(root, "shaped"), "config.pbtxt", `max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: 6 }, { name: "shape" data_type: TYPE_INT64 dims: 2 } ]
output { name: "y" data_type: TYPE_FP32 dims: [ -1, -1 ] }
model_warmup { name: "w"
  inputs { key: "x" value { data_type: TYPE_FP32 dims: 6 zero_data: true } }
  inputs { key: "shape" value { data_type: TYPE_INT64 dims: 2 input_data_file: "shape" } } }`)
	if err := os.MkdirAll(filepath.Join(root, "shaped", "warmup"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "shaped", "warmup"), "shape", "\x02\x00\x00\x00\x00\x00\x00\x00"+
		"\x03\x00\x00\x00\x00\x00\x00\x00")
	if err := os.MkdirAll(filepath.Join(root, "python", "1"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "python"), "config.pbtxt", `backend: "mystery"`)
	base := serve(t, root, "--http", "127.0.0.1:0", "--grpc", "off", "--admin", "off").url()
	until(t, func() bool { return get(base+"/v2/health/ready") == 200 })
	const x = `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[-1,2]}]%s}`
	const s = `{"inputs":[{"name":"x","datatype":"INT32","shape":[1,1],"data":[5]}],"parameters":{%s}}`
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"sign/infer", fmt.Sprintf(x, ""), 200, `"model_version":"3"`},
		{"sign/infer", fmt.Sprintf(x, ""), 200, `"data":[1,2]`},
		{"sign/versions/1/infer", fmt.Sprintf(x, ""), 200, `"data":[1,-2]`},
		{"sign/versions/2/infer", fmt.Sprintf(x, ""), 404, `version 2 is not found`},
		{
			"sign/infer", fmt.Sprintf(x, `,"outputs":[{"name":"y","parameters":{"classification":1}}]`), 200,
			`["2.000000:1:right"]`,
		},
		{
			"shaped/infer", `{"inputs":[{"name":"x","datatype":"FP32","shape":[6],"data":[1,2,3,4,5,6]},` +
				`{"name":"shape","datatype":"INT64","shape":[2],"data":[3,2]}]}`, 200, `"shape":[3,2]`,
		},
		{"seq/infer", fmt.Sprintf(s, `"sequence_id":7`), 400, `must specify the START flag`},
		{"seq/infer", fmt.Sprintf(s, `"sequence_id":7,"sequence_start":true`), 200, `"data":[6]`},
		{"seq/infer", fmt.Sprintf(s, `"sequence_id":7`), 200, `"data":[5]`},
	} {
		if code, got := postTo(t, base+"/v2/models/"+c.path, c.body); code != c.status || !strings.Contains(got,
			c.want) {
			t.Errorf("%s %s: %d %s, want %s", c.path, c.body, code, got, c.want)
		}
	}
	_, config := bodyOf(t, base+"/v2/models/sign/config")
	for _, want := range []string{
		`"version_policy":{"all":{}}`, `"label_filename":"labels.txt"`, `"format":"FORMAT_NONE"`, `"max_batch_size":4`,
		`"parameters":{"k":{"string_value":"v"}}`, `"dims":[2]`,
	} {
		if !strings.Contains(config, want) {
			t.Errorf("the configuration lacks %s: %s", want, config)
		}
	}
}
