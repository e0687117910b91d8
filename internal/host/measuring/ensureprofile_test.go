package measuring

import (
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/hosttest"
	onnxpb "github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"

	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"google.golang.org/protobuf/proto"
)

// Progress and notices are reported to the callbacks, if there are any.
func TestOptionsAreTold(t *testing.T) {
	var sentences []string
	shares := 0
	o, err := host.Open(hosttest.Write(t, hosttest.Fakes), host.Options{
		Notice:   func(s string) { sentences = append(sentences, s) },
		Progress: func(share float64, _ string) { shares++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	quick := func(c *profiler.Config) { c.MaxBatch, c.MinSamples, c.MaxSamples = 1, 2, 2 }
	if _, err := Measure(t.Context(), o, Measuring{Tune: quick}); err != nil {
		t.Fatal(err)
	}
	if shares == 0 || len(sentences) > 0 {
		t.Errorf("%d shares, notices %q", shares, sentences)
	}
}

// Odd models do not keep the others from being served, wherever they stand. What cannot be loaded is left out, what
// does not batch runs one query at a time, and what runs with no guessed input is served unmeasured.
func TestOddModelsStopNoOther(t *testing.T) {
	names := []string{"good", "product", "centred", "divisor", "large", "missing"}
	for range names {
		names = append(names[1:], names[0])
		for _, first := range []bool{false, true} {
			path := hosttest.OddRepository(t, names...)
			p, said := measuredWith(t, path, host.Options{Quick: true, ProfileFirst: first})
			spec := p.Spec()
			known := make(map[string]bool)
			for v := range spec.Variants {
				name := spec.Variants[v].Name[1:]
				known[name] = p.Latencies().Latency(serving.VariantID(v), 0, 1, 1) < profile.Unknown
				if batches := spec.Variants[v].MaxBatch > 1; batches != (name == "good" || name == "divisor") {
					t.Errorf("%v: batches of %q have up to %d items", names, name, spec.Variants[v].MaxBatch)
				}
			}
			if len(p.Broken()) != 1 || p.Broken()[0].App.Name[1:] != "missing" || len(known) != 5 {
				t.Errorf("%v: left out %+v, known %v", names, p.Broken(), known)
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
			if n := len(p.Unmeasured()); first != (n == 0) || strings.Contains(said, "product") {
				t.Errorf("%v: %d models are to be measured, profile first: %v:\n%s", names, n, first, said)
			}
		}
	}
	if _, err := os.Stat("sluice.profile.json"); err == nil {
		t.Error("a profile lies in the test's folder")
	}
}

// A model that runs with nothing that anybody would guess is measured with inputs that lie beside it.
func TestMeasuredWithWhatLiesBeside(t *testing.T) {
	path := hosttest.OddRepository(t, "large")
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
	p, said := measuredWith(t, path, host.Options{Quick: true, ProfileFirst: true})
	if !p.Begun().File.Has("0large", "local") || strings.Contains(said,
		"unmeasured") || len(p.Begun().File.Failures) > 0 {
		t.Errorf("%+v:\n%s", p.Begun().File, said)
	}
}

// measuredWith opens a configuration as a server does, and returns what was said.
func measuredWith(t *testing.T, path string, o host.Options) (*host.Profiled, string) {
	t.Helper()
	var said []string
	o.Notice = func(text string) { said = append(said, text) }
	opened, err := host.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := EnsureProfile(t.Context(), opened)
	if err != nil {
		t.Fatal(err)
	}
	return p, strings.Join(said, "\n")
}
