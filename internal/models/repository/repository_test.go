package repository

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	onnxpb "github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// write puts a file below root, making its directories.
func write(t *testing.T, root, name, text string) {
	t.Helper()
	at := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// model writes an ONNX file that returns its float input of the given shape.
func model(t *testing.T, root, name string, dims ...int64) {
	t.Helper()
	write(t, root, name, "")
	if err := onnxmodel.Identity(onnxmodel.Float32, dims...).Write(filepath.Join(root, name)); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, root string) *Repository {
	t.Helper()
	r, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestModelWithoutConfiguration(t *testing.T) {
	root := t.TempDir()
	model(t, root, "m/1/model.onnx", -1, 3)
	model(t, root, "m/2/model.onnx", -1, 4)
	model(t, root, "m/10/model.onnx", -1, 5)
	write(t, root, "m/010/model.onnx", "ignored: not a plain number")
	write(t, root, "m/notes.txt", "ignored")
	m, err := open(t, root).Model("m")
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Versions) != 1 || m.Latest().Number != 10 || m.MaxBatch != DefaultMaxBatch || m.Latest().Bytes == 0 {
		t.Errorf("versions %v, max batch %d", m.Versions, m.MaxBatch)
	}
	if want := []tensor.Spec{
		{Name: "input", DType: tensor.FP32, Shape: []int64{-1, 5}},
	}; !reflect.DeepEqual(m.Inputs, want) {
		t.Errorf("inputs %v, want %v", m.Inputs, want)
	}
	if _, err := os.Stat(m.Latest().Path); err != nil || !filepath.IsAbs(m.Latest().Path) {
		t.Errorf("path %s: %v", m.Latest().Path, err)
	}
}

func TestMaxBatchAndShapes(t *testing.T) {
	const io = "input { name: \"input\" data_type: TYPE_FP32 dims: %D }\noutput { name: \"output\" data_type: " +
		"TYPE_FP32 dims: %D }\n"
	for _, c := range []struct {
		name, config string
		file         []int64
		batch        int
		shape        []int64
		err          string
	}{
		{
			"bounded", "max_batch_size: 8\n" + strings.ReplaceAll(io, "%D", "[ 3 ]"), []int64{-1, 3}, 8, []int64{-1, 3},
			"",
		},
		{"bounded, tensors from the file", "max_batch_size: 8", []int64{-1, 3}, 8, []int64{-1, 3}, ""},
		{
			"absent, dims without the batch dimension", strings.ReplaceAll(io, "%D", "[ 3 ]"), []int64{-1, 3},
			DefaultMaxBatch, []int64{-1, 3}, "",
		},
		{"absent, whole dims", strings.ReplaceAll(io, "%D", "[ -1, 3 ]"), []int64{-1, 3}, 0, []int64{-1, 3}, ""},
		{"none", "max_batch_size: 0", []int64{2, 3}, 0, []int64{2, 3}, ""},
		{"fixed file", "", []int64{2, 3}, 0, []int64{2, 3}, ""},
		{
			"configured dims are narrower", "max_batch_size: 4\n" + strings.ReplaceAll(io, "%D", "[ 7 ]"),
			[]int64{-1, -1}, 4, []int64{-1, 7}, "",
		},
		{
			"batch of a fixed file", "max_batch_size: 8", []int64{1, 3}, 0, nil,
			`config.pbtxt: max_batch_size is 8, but "input" has the shape [1,3] in the model file`,
		},
		{
			"batch of a fixed file, dims given", "max_batch_size: 8\n" + strings.ReplaceAll(io, "%D", "[ 3 ]"),
			[]int64{1, 3}, 0, nil, `max_batch_size is 8, but "input" has the shape [1,3] in the model file`,
		},
		{
			"batch of a scalar", "max_batch_size: 8", []int64{}, 0, nil,
			`max_batch_size is 8, but "input" has the shape [] in the model file`,
		},
		{
			"wrong dims", "max_batch_size: 8\n" + strings.ReplaceAll(io, "%D", "[ 4 ]"), []int64{-1, 3}, 0, nil,
			`input "input": dims: [4], but the model file has the shape [3] for an item of a batch`,
		},
		{
			"dims with the batch dimension", "max_batch_size: 8\n" + strings.ReplaceAll(io, "%D", "[ -1, 3 ]"),
			[]int64{-1, 3}, 0, nil, `input "input": dims: [-1,3], but the model file has the shape [3] for an item ` +
				`of a batch: with max_batch_size 8 the batch dimension is none of them: write [3]`,
		},
		{
			"dims without the batch dimension", "max_batch_size: 0\n" + strings.ReplaceAll(io, "%D", "[ 3 ]"),
			[]int64{-1, 3}, 0, nil, `input "input": dims: [3], but the model file has the shape [-1,3]: without ` +
				`max_batch_size the batch dimension is one of them: write [-1,3], or set max_batch_size`,
		},
		{
			"wrong type", "input { name: \"input\" data_type: TYPE_INT8 dims: 3 }", []int64{-1, 3}, 0, nil,
			"data_type is INT8, but the model file says FP32",
		},
		{
			"wrong name", "input { name: \"x\" data_type: TYPE_FP32 dims: 3 }", []int64{-1, 3}, 0, nil,
			`no such input, it has "input"`,
		},
		{"negative", "max_batch_size: -1", []int64{-1, 3}, 0, nil, "max_batch_size is -1"},
		{"other directory", "name: \"other\"", []int64{-1, 3}, 0, nil, `name is "other", but the directory is "m"`},
		{
			"file name leaves", "default_model_filename: \"../model.onnx\"", []int64{-1, 3}, 0, nil,
			"want a plain file name",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			model(t, root, "m/1/model.onnx", c.file...)
			write(t, root, "m/config.pbtxt", c.config)
			m, err := open(t, root).Model("m")
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if m.MaxBatch != c.batch || !reflect.DeepEqual(m.Inputs[0].Shape, c.shape) ||
				!reflect.DeepEqual(m.Outputs[0].Shape, c.shape) {
				t.Errorf("max batch %d, shapes %v %v", m.MaxBatch, m.Inputs[0].Shape, m.Outputs[0].Shape)
			}
		})
	}
}

func TestTypesThatTheProtocolLacksAreNamed(t *testing.T) {
	root := t.TempDir()
	model(t, root, "m/1/model.onnx", 2)
	m, err := onnxmodel.Load(filepath.Join(root, "m/1/model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	x := m.Graph.Input[0]
	x.Type = &onnxpb.TypeProto{Value: &onnxpb.TypeProto_SequenceType{
		SequenceType: &onnxpb.TypeProto_Sequence{ElemType: x.Type},
	}}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, "m/1/model.onnx", string(data))
	const want = `input "input" of the model file is of type sequence of FLOAT tensors`
	if _, err := open(t, root).Model("m"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestVersionPolicy(t *testing.T) {
	root := t.TempDir()
	for _, v := range []string{"1", "3", "7"} {
		model(t, root, "m/"+v+"/model.onnx", -1, 3)
	}
	for config, want := range map[string]string{
		"": "7",
		"version_policy { latest { num_versions: 2 } }":   "3, 7",
		"version_policy { latest { num_versions: 9 } }":   "1, 3, 7",
		"version_policy { latest { } }":                   "7",
		"version_policy { all { } }":                      "1, 3, 7",
		"version_policy { specific { versions: [3,1] } }": "1, 3",
	} {
		write(t, root, "m/config.pbtxt", config)
		m, err := open(t, root).Model("m")
		if err != nil || m.numbers() != want {
			t.Errorf("%q: versions %v, err %v, want %s", config, m, err, want)
		}
	}
	write(t, root, "m/config.pbtxt", "version_policy { specific { versions: [3] } }")
	m, err := open(t, root).Model("m")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := m.Version("3"); err != nil || v.Number != 3 {
		t.Errorf("Version(3) = %v, %v", v, err)
	}
	for _, bad := range []string{"7", "03", "x"} {
		if _, err := m.Version(bad); !errors.Is(err, ErrNotFound) {
			t.Errorf("Version(%q): error %v", bad, err)
		}
	}
	write(t, root, "m/config.pbtxt", "version_policy { specific { versions: [4] } }")
	if _, err := open(t, root).Model("m"); err == nil ||
		!strings.Contains(err.Error(), "version 4: not found: there is [1 3 7]") {
		t.Errorf("missing specific version: %v", err)
	}
}

func TestNothingOutsideTheRootIsReached(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "repo")
	model(t, root, "good/1/model.onnx", -1, 3)
	model(t, top, "outside/1/model.onnx", -1, 3)
	write(t, top, "secret", "name: \"x\"")
	link := func(to, from string) {
		t.Helper()
		at := filepath.Join(root, from)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(top, "outside"), "absolute")
	link("../outside", "relative")
	link("../../outside/1", "version/1")
	link("../../../outside/1/model.onnx", "file/1/model.onnx")
	model(t, root, "config/1/model.onnx", -1, 3)
	link("../../secret", "config/config.pbtxt")
	link("good", "inside")
	link("loop", "loop")
	r := open(t, root)
	for _, name := range []string{
		"absolute", "relative", "version", "file", "config", "loop", "..", ".", "", "../outside", "good/1", `a\b`,
		"a\x00b", "/etc", ".hidden", strings.Repeat("x", 300),
	} {
		if m, err := r.Model(name); err == nil {
			t.Errorf("Model(%q) = %v, want an error", name, m)
		}
	}
	if m, err := r.Model("inside"); err != nil || m.Latest().Path != filepath.Join(r.Dir(), "good/1/model.onnx") {
		t.Errorf("a link that stays inside: %v, %v", m, err)
	}
	names, err := r.Names()
	if err != nil || !reflect.DeepEqual(names, []string{"config", "file", "good", "inside", "version"}) {
		t.Errorf("Names() = %v, %v", names, err)
	}
	if _, err := r.ReadFile("../secret", 100); err == nil {
		t.Error("ReadFile left the root")
	}
	models, err := r.Models()
	if len(models) != 2 || err == nil || !strings.Contains(err.Error(), `model "file"`) ||
		!strings.Contains(err.Error(), `model "version"`) {
		t.Errorf("Models() = %d models, %v", len(models), err)
	}
}

func TestMissingPieces(t *testing.T) {
	root := t.TempDir()
	write(t, root, "empty/readme", "x")
	write(t, root, "nofile/1/other.onnx", "x")
	write(t, root, "garbage/1/model.onnx", "this is not a model")
	write(t, root, "broken/config.pbtxt", "input {\n")
	write(t, root, "file", "x")
	r := open(t, root)
	for name, want := range map[string]string{
		"absent":  "not found",
		"empty":   "no version directory",
		"nofile":  "version 1: nofile/1/model.onnx: not found",
		"garbage": "model.onnx",
		"broken":  "config.pbtxt: line 2: '}' is missing",
		"file":    "is not a directory",
	} {
		if _, err := r.Model(name); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("Model(%q): error %v, want %q", name, err, want)
		}
	}
	if _, err := r.ReadFile("file", 0); err == nil ||
		!strings.Contains(err.Error(), "larger than the limit of 0 bytes") {
		t.Errorf("ReadFile over its limit: %v", err)
	}
	if _, err := Open(filepath.Join(root, "nowhere")); err == nil {
		t.Error("Open of a missing directory")
	}
	// A model for a remote server: nothing readable here, but the configuration says it all.
	write(t, root, "garbage/config.pbtxt",
		"platform: \"tensorrt_plan\" max_batch_size: 2\ninput { name: \"i\" data_type: TYPE_STRING dims: 1 }\noutput "+
			"{ name: \"o\" data_type: TYPE_BF16 dims: 2 }")
	m, err := r.Model("garbage")
	if err != nil || len(m.Warnings) != 2 || m.Inputs[0].DType != tensor.Bytes || m.Outputs[0].Shape[1] != 2 ||
		m.MaxBatch != 2 {
		t.Errorf("described by its configuration alone: %+v, %v", m, err)
	}
}

func TestWhatIsReadButNotAppliedIsSaid(t *testing.T) {
	root := t.TempDir()
	model(t, root, "m/1/model.onnx", -1, 3)
	write(t, root, "m/config.pbtxt",
		"max_batch_size: 4 dynamic_batching { } instance_group { count: 2 } model_warmup { name: \"w\" } backend: "+
			"\"python\" optimization { }")
	m, err := open(t, root).Model("m")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(m.Warnings, "\n")
	for _, want := range []string{"instance_group", "model_warmup", `backend is "python"`} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning about %s in:\n%s", want, all)
		}
	}
	if len(m.Unknown) != 1 || m.Unknown[0] != "optimization (line 1)" {
		t.Errorf("unknown %v", m.Unknown)
	}
}
