package hosttest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/runtime/native"
)

// Apps is a configuration whose workers only wait.
const Apps = `
version: 1
device_types: [{name: d, price_per_hour: 1}]
workers: [{name: w, count: 2, backend: {kind: fake, latency: 4ms, latency_per_item: 1ms}}]
apps:
  - name: app
    slo: {latency: 100ms}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: big, accuracy: 0.9, max_batch: 16}, {name: small, accuracy: 0.7, max_batch: 16}]
`

// Fakes is the same on free ports.
const Fakes = Apps + `server: {http: "127.0.0.1:0", grpc: "127.0.0.1:0", admin: "127.0.0.1:0", not_ready: 0s}
`

// Write puts a configuration into a folder of its own and returns its path.
func Write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Profiled opens a configuration and takes the profile that it has.
func Profiled(t testing.TB, text string) *host.Profiled {
	t.Helper()
	o, err := host.Open(Write(t, text), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.Profile()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// odd are models that cannot be measured like others: by name, without the number in front.
func odd() map[string]*onnxmodel.Graph {
	// A division by x/n, which is 0 for the x below n.
	divides := func(n float32) *onnxmodel.Graph {
		return onnxmodel.NewGraph("m").Input("x", onnxmodel.Int64, onnxmodel.Symbolic).
			Initializer("n", []float32{n}, 1).
			Node("Cast", []string{"n"}, []string{"by"}, onnxmodel.AttrInt("to", int64(onnxmodel.Int64))).
			Node("Div", []string{"x", "by"}, []string{"part"}).Node("Div", []string{"x", "part"}, []string{"y"}).
			Output("y", onnxmodel.Int64, onnxmodel.Symbolic)
	}
	const open = onnxmodel.Symbolic
	return map[string]*onnxmodel.Graph{
		"good": onnxmodel.Identity(onnxmodel.Float32, open, 3),
		// The first dimensions look like those of a batch. With one item each they fit together, with two they do not.
		"product": onnxmodel.NewGraph("m").Input("a", onnxmodel.Float32, open, open).
			Input("b", onnxmodel.Float32, open, open).Node("MatMul", []string{"a", "b"}, []string{"y"}).
			Output("y", onnxmodel.Float32, open, open),
		// Its items change each other's answers.
		"centred": onnxmodel.NewGraph("m").Input("x", onnxmodel.Float32, open, 3).
			Node("ReduceMean", []string{"x"}, []string{"mean"}, onnxmodel.AttrInts("axes", 0)).
			Node("Sub", []string{"x", "mean"}, []string{"y"}).Output("y", onnxmodel.Float32, open, 3),
		"divisor": divides(1),    // fails with zeros, runs with ones
		"large":   divides(1000), // runs with nothing that anybody would guess
		"missing": onnxmodel.NewGraph("m").Input("x", onnxmodel.Float32, open, 3).
			Node("NoSuchOperator", []string{"x"}, []string{"y"}).Output("y", onnxmodel.Float32, open, 3),
	}
}

// OddRepository writes the models, in the order of names, and returns a configuration of all of them.
func OddRepository(t *testing.T, names ...string) string {
	t.Helper()
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skipf("not run without ONNX Runtime: %v", err)
	}
	dir := t.TempDir()
	text := `
version: 1
device_types: [{name: local, cores: 1}]
workers: [{name: here, device_type: local, backend: {kind: onnx}}]
models: {repository: models}
server: {http: "127.0.0.1:0", grpc: "off", admin: "off", not_ready: 0s}
apps:
`
	for k, name := range names {
		graph := odd()[name]
		name = fmt.Sprint(k, name)
		if err := graph.Write(filepath.Join(dir, "models", name, "1", "model.onnx")); err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("  - {name: %q, slo: {latency: 1s}, variants: [{name: %q, accuracy: 1}]}\n", name, name)
	}
	path := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Lines is a log that can be read while it is written.
type Lines struct {
	mu   sync.Mutex
	Text strings.Builder
}

func (l *Lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Text.Write(b)
}

// Has reports whether something was written.
func (l *Lines) Has(what string) bool { return l.Count(what) > 0 }

// Count is how often something was written.
func (l *Lines) Count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.Text.String(), what)
}
