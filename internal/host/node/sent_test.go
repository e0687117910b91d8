package node_test

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host/node"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/runtime/fake"
	"github.com/sluice-serving/sluice/internal/runtime/native"
	"github.com/sluice-serving/sluice/internal/runtime/openinference"
	"github.com/sluice-serving/sluice/internal/runtime/python"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// startEmpty runs a node whose repository is empty, and which takes files of Python or not. What is
// left of sent models afterwards is an error.
func startEmpty(t *testing.T, takes bool) *node.Node {
	t.Helper()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	n, err := node.New(node.Config{
		Repository: t.TempDir(), SentPython: takes, Python: python.Config{Interpreter: os.Getenv("SLUICE_PYTHON")},
		Server: server.Config{GRPC: "127.0.0.1:0", HTTP: server.Off},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, _ := filepath.Glob(filepath.Join(temp, "sluice-node-*")); len(left) > 0 {
			t.Errorf("files of models are left: %v", left)
		}
	})
	serve(t, n)
	return n
}

// answers runs a query of one row, 1 and 1.
func answers(t *testing.T, n *node.Node) (y float32, err error) {
	t.Helper()
	m, ok := n.Lookup(model)
	if !ok {
		t.Fatal("the model is not loaded")
	}
	r, err := n.Chain(server.Links{})(t.Context(), &dataplane.Request{
		App: m.App, Variant: serving.None, Items: 1,
		Inputs: []tensor.Tensor{{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2},
			Data: []byte{0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f}}},
	})
	if err != nil {
		return 0, err
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(r.Outputs[0].Data)), nil
}

// adds is a model that adds a number to what it gets.
func adds(t *testing.T, number float32) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	g := onnxmodel.NewGraph("adds").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 2).Initializer("number",
		[]float32{number}, 1).
		Node("Add", []string{"x", "number"}, []string{"y"}).Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 2)
	if err := g.Write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A model may come with its load. One that comes again takes the place of the one before, a load without one leaves it,
// and what cannot be run leaves nothing behind.
func TestModelsComeWithTheirLoad(t *testing.T) {
	if _, err := native.ONNXRuntime(); errors.Is(err, native.ErrMissing) {
		t.Skip(err)
	}
	n := startEmpty(t, false)
	load := func(config string, files map[string][]byte) error {
		how := server.Loading{Files: files}
		if config != "" {
			how.Config = []byte(config)
		}
		return n.Load(t.Context(), model, how)
	}
	const config = `{"backend": "onnxruntime", "max_batch_size": 4, "instance_group": [{"count": 1}],
		"parameters": {"intra_op_thread_count": {"string_value": "1"}}}`
	file := func(path string, data []byte) map[string][]byte { return map[string][]byte{path: data} }
	for number, want := range []float32{1, 2} {
		if err := load(config, file("1/model.onnx", adds(t, float32(number)))); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if y, err := answers(t, n); err != nil || y != want {
				t.Fatalf("%v %v, want %v", y, err, want)
			}
			if err := load("", nil); err != nil { // once more: it is there
				t.Fatal(err)
			}
		}
	}
	for name, x := range map[string]struct {
		config string
		files  map[string][]byte
		says   string
	}{
		"no configuration": {"", file("1/model.onnx", adds(t, 1)), "config"},
		"no files":         {config, nil, "only together"},
		"no version":       {config, file("model.onnx", adds(t, 1)), "file:VERSION/NAME"},
		"another folder":   {config, file("1/../../x", adds(t, 1)), "file:VERSION/NAME"},
		"Python":           {config, file("1/model.py", []byte("junk")), "--sent-python"},
		"no model":         {config, file("1/model.onnx", []byte("junk")), "model.onnx"},
	} {
		if err := load(x.config, x.files); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, want an error with %q", name, err, x.says)
		}
	}
}

// A model that came with a load goes when the runs that needed it are gone for a while, and not before: the next run
// may need it. A model of the repository stays.
func TestSentModelsOfDeadRunsGo(t *testing.T) {
	stub, err := fake.New(fake.Config{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := node.New(node.Config{Fake: stub, Linger: 50 * time.Millisecond,
		Server: server.Config{GRPC: "127.0.0.1:0", HTTP: server.Off}})
	if err != nil {
		t.Fatal(err)
	}
	serve(t, n)
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := os.WriteFile(path, []byte("a model"), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func() (*openinference.Backend, dataplane.Runner) {
		c := openinference.Config{Address: n.GRPCAddr(), LoadModels: true, PollEvery: time.Millisecond,
			Sent: &openinference.Sent{}, Models: map[serving.VariantID]openinference.Model{1: {Name: "own"}}}
		c.Sent.Bind(0, openinference.SentModel{Name: "sent", Path: path})
		b, err := openinference.New(c)
		if err != nil {
			t.Fatal(err)
		}
		r, err := b.Launch(t.Context(),
			dataplane.InstanceSpec{Variants: []serving.VariantID{0, 1}, BatchLimit: 1, Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		return b, r
	}
	die := func(b *openinference.Backend, r dataplane.Runner) {
		b.Detach() // as one that was killed, it unloads nothing
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	names := func() (all []string) {
		for _, m := range n.Models() {
			all = append(all, m.Name)
		}
		return all
	}
	before, was := start()
	next, is := start()
	die(before, was)
	time.Sleep(200 * time.Millisecond) // longer than it lingers
	if got := names(); !slices.Contains(got, "sent-c0-1") {
		t.Fatalf("while a run needs it the node has %v", got)
	}
	die(next, is)
	for deadline := time.Now().Add(time.Minute); !slices.Equal(names(), []string{"own"}); {
		if time.Now().After(deadline) {
			t.Fatalf("the node has %v, want what is its own", names())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A file of Python comes with the name of its class.
func TestPythonComesWithItsLoad(t *testing.T) {
	if os.Getenv("SLUICE_PYTHON") == "" {
		t.Skip("SLUICE_PYTHON names no interpreter")
	}
	n := startEmpty(t, true)
	const code = `
class Two:
    inputs = {"x": "FP32[-1,2]"}
    outputs = {"y": "FP32[-1,2]"}
    max_batch = 2
    by = 2
    def infer(self, inputs):
        return {"y": inputs["x"] * self.by}

class Three(Two):
    by = 3
`
	err := n.Load(t.Context(), model, server.Loading{
		Config: []byte(`{"backend": "python"}`), Files: map[string][]byte{"1/model.py": []byte(code)},
		Settings: map[string]string{node.ClassSetting: "Three"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if y, err := answers(t, n); err != nil || y != 3 {
		t.Errorf("%v %v, want 3", y, err)
	}
}
