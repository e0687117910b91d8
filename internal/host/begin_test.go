package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	onnxpb "github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
	"github.com/sluice-serving/sluice/internal/runtime/native"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

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

// oddRepository writes the models, in the order of names, and returns a configuration of all of them.
func oddRepository(t *testing.T, names ...string) string {
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

// begun opens a configuration as a server does, and returns what was said.
func begunWith(t *testing.T, path string, o Options) (*Profiled, string) {
	t.Helper()
	var said []string
	o.Notice = func(text string) { said = append(said, text) }
	opened, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := opened.EnsureProfile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p, strings.Join(said, "\n")
}

// Odd models do not keep the others from being served, wherever they stand. What cannot be loaded is left out, what
// does not batch runs one query at a time, and what runs with no guessed input is served unmeasured.
func TestOddModelsStopNoOther(t *testing.T) {
	names := []string{"good", "product", "centred", "divisor", "large", "missing"}
	for range names {
		names = append(names[1:], names[0])
		for _, first := range []bool{false, true} {
			path := oddRepository(t, names...)
			p, said := begunWith(t, path, Options{Quick: true, ProfileFirst: first})
			spec := p.Spec()
			known := make(map[string]bool)
			for v := range spec.Variants {
				name := spec.Variants[v].Name[1:]
				known[name] = p.latencies.Latency(serving.VariantID(v), 0, 1, 1) < profile.Unknown
				if batches := spec.Variants[v].MaxBatch > 1; batches != (name == "good" || name == "divisor") {
					t.Errorf("%v: batches of %q have up to %d items", names, name, spec.Variants[v].MaxBatch)
				}
			}
			if len(p.broken) != 1 || p.broken[0].app.Name[1:] != "missing" || len(known) != 5 {
				t.Errorf("%v: left out %+v, known %v", names, p.broken, known)
			}
			for name, is := range known {
				if !is {
					t.Errorf("%v: nothing is believed of %q", names, name)
				}
			}
			for _, want := range []string{`missing" is not served: `, `large" is served unmeasured`, "model_warmup"} {
				if !strings.Contains(said, want) {
					t.Errorf("%v: it is not said that %s:\n%s", names, want, said)
				}
			}
			if n := len(p.unmeasured()); first != (n == 0) || strings.Contains(said, "product") {
				t.Errorf("%v: %d models are to be measured, profile first: %v:\n%s", names, n, first, said)
			}
		}
	}
	if _, err := os.Stat("sluice.profile.json"); err == nil {
		t.Error("a profile lies in the test's folder")
	}
}

// oddServer serves a configuration until the test ends.
func oddServer(t *testing.T, p *Profiled) *Server {
	t.Helper()
	s, err := p.NewServer(t.Context(), ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(serving) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// refineAll does what a server would do while it is idle.
func refineAll(t *testing.T, s *Server) {
	t.Helper()
	for do := s.refinement(); do != nil; do = s.refinement() {
		do(t.Context())
	}
}

// A server measures while it is idle what it began with a look at: what was measured is believed, and kept for the next
// start, also of another configuration with the same models.
func TestMeasuredWhileIdle(t *testing.T) {
	names := []string{"good", "product", "divisor", "large", "missing"}
	path, measured := oddRepository(t, names...), t.TempDir()
	o := Options{Quick: true, Measured: measured}
	p, _ := begunWith(t, path, o)
	if n := len(p.unmeasured()); n != 4 {
		t.Fatalf("%d models are to be measured, want 4", n)
	}
	s := oddServer(t, p)
	refineAll(t, s)
	var g *functions.Extension
	err := s.refiner.manager.Extend(t.Context(), func(x *functions.Extension) error { g = x; return nil })
	if err != nil {
		t.Fatal(err)
	}
	count := make(map[serving.VariantID]int)
	for _, x := range g.Measured.Latency {
		count[x.Variant] = max(count[x.Variant], x.Samples)
	}
	for v := range g.Spec.Variants {
		if name := g.Spec.Variants[v].Name[1:]; (count[serving.VariantID(v)] == 0) != (name == "large") {
			t.Errorf("%q was measured with %d samples", name, count[serving.VariantID(v)])
		}
	}
	for _, again := range []string{path, oddRepository(t, append(names[1:], names[0])...)} {
		p, said := begunWith(t, again, o)
		rest := p.unmeasured()
		if len(rest) != 1 || rest[0].variant[1:] != "large" || len(p.single) != 2 {
			t.Errorf("a later start is to measure %v, one at a time run %v:\n%s", rest, p.single, said)
		}
	}
	if kept, err := os.ReadDir(measured); err != nil || len(kept) != 3 {
		t.Errorf("%d models are kept, %v", len(kept), err)
	}
}

// A profile that is known from other runs altogether lies beside the configuration, too.
func TestKnownProfilesAreKept(t *testing.T) {
	o := Options{Quick: true, Measured: t.TempDir()}
	p, _ := begunWith(t, oddRepository(t, "good"), o)
	refineAll(t, oddServer(t, p))
	path := oddRepository(t, "good")
	p, said := begunWith(t, path, o)
	f, err := profiler.ReadFile(filepath.Join(filepath.Dir(path), MeasuredProfile))
	if len(p.unmeasured()) > 0 || err != nil || !f.Has("0good", "local") {
		t.Errorf("%v are to be measured, %v:\n%s", p.unmeasured(), err, said)
	}
}

// believedOf returns what a server believes of a variant: the samples that it rests on, and what one item takes.
func believedOf(t *testing.T, s *Server, name string) (samples int, one time.Duration) {
	t.Helper()
	err := s.refiner.manager.Extend(t.Context(), func(x *functions.Extension) error {
		for _, p := range x.Measured.Latency {
			if x.Spec.Variants[p.Variant].Name == name && p.Items == 1 {
				samples, one = samples+p.Samples, p.Mean
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return samples, one
}

// What nobody measured is not refused: its queries are answered. What they take is believed after a few, and the first
// that is answered is what the model is measured with.
func TestUnmeasuredIsServedAndLearned(t *testing.T) {
	path := oddRepository(t, "good", "large")
	p, _ := begunWith(t, path, Options{Quick: true})
	s := oddServer(t, p)
	const body = `{"inputs":[{"name":"x","datatype":"INT64","shape":[1],"data":[%d]}]}`
	send := func(x, want int) {
		code, got := ask(t, "POST", s.HTTPAddr()+"/v2/models/1large/infer", fmt.Sprintf(body, x))
		if code != want || want == 200 && !strings.Contains(got, `"data":[1000]`) {
			t.Errorf("%d: %d %s, want %d", x, code, got, want)
		}
	}
	send(1, 500)
	if n, one := believedOf(t, s, "1large"); n != 0 || one != assumedLatency {
		t.Errorf("%d samples, %v are believed of what never ran", n, one)
	}
	for range firstRuns {
		send(5000, 200)
	}
	err := waitFor(t.Context(), func() bool { n, _ := believedOf(t, s, "1large"); return n == firstRuns })
	if _, one := believedOf(t, s, "1large"); err != nil || one == assumedLatency {
		t.Errorf("%v are believed after %d queries, %v", one, firstRuns, err)
	}
	refineAll(t, s)
	if n, _ := believedOf(t, s, "1large"); n <= firstRuns {
		t.Errorf("%d samples: it is not measured with what its clients send", n)
	}
	if p, said := begunWith(t, path, Options{Quick: true}); len(p.unmeasured()) > 0 {
		t.Errorf("%v are to be measured at the next start:\n%s", p.unmeasured(), said)
	}
}

// A model that runs with nothing that anybody would guess is measured with inputs that lie beside it.
func TestMeasuredWithWhatLiesBeside(t *testing.T) {
	path := oddRepository(t, "large")
	data, err := proto.Marshal(&onnxpb.TensorProto{
		DataType: int32(onnxmodel.Int64), Dims: []int64{3}, Int64Data: []int64{5000, 6000, 7000},
	})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(filepath.Dir(path), "models", "0large", "1", "test_data_set_0")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "input_0.pb"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	p, said := begunWith(t, path, Options{Quick: true, ProfileFirst: true})
	if !p.begun.file.Has("0large", "local") || strings.Contains(said, "unmeasured") || len(p.begun.file.Failures) > 0 {
		t.Errorf("%+v:\n%s", p.begun.file, said)
	}
}
