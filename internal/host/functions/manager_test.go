package functions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/serving/profile"
)

// host is a functions.Host that records its calls.
type host struct {
	t       testing.TB
	bound   map[serving.VariantID]string
	refuses error
	grown   []*engine.Growth
	open    []Live
	plane   error // that Grow fails with
}

func (h *host) Bind(v serving.VariantID, f *File) { h.bound[v] = f.Path }

func (h *host) Describe(context.Context, *File) (*repository.Described, int, error) {
	return nil, 0, errors.New("no models in Python here")
}

func (h *host) Plan(context.Context, *engine.Growth) (*plan.Plan, error) { return nil, h.refuses }

func (h *host) Grow(g *engine.Growth, _ []pipeline.Wiring, open []Live) error {
	if n := len(h.grown); n > 0 {
		if err := g.Spec.CheckGrowth(h.grown[n-1].Spec); err != nil {
			h.t.Error(err)
		}
	}
	h.grown, h.open = append(h.grown, g), open
	return h.plane
}

func (h *host) Free() serving.Free { return serving.Free{} }

func (h *host) State(*Live) (string, int) { return Ready, 1 }

// fixed is a Predictor that says how many us an item takes, and counts how often it is asked.
type fixed struct {
	us    float64
	asked int
	err   error
	// loaded and most are what the model was measured to take, and with its largest batch, in bytes; 0 for nothing.
	loaded, most int64
	// fails is the items of the batch that a machine lacks the memory for; 0 for none.
	fails int
}

func (f *fixed) Predict(_ context.Context, s *Subject) (*profiler.File, error) {
	f.asked++
	if f.err != nil {
		return nil, f.err
	}
	name, device := s.Spec.Variants[s.Variant].Name, s.Spec.DeviceTypes[0].Name
	out := &profiler.File{
		Version: profiler.Version, Created: time.Unix(1, 0), DeviceType: device, Loads: []profiler.Load{},
	}
	for _, b := range []int{1, s.Spec.Variants[s.Variant].MaxBatch} {
		if us := f.us * float64(b); b == 1 || len(out.Points) == 1 && out.Points[0].Batch != b {
			out.Points = append(out.Points, profiler.Point{
				Variant: name, DeviceType: device, Batch: b, Concurrency: 1, Samples: 10, Mean: us, P50: us, P90: us,
				P95: us, P99: us,
			})
		}
	}
	if n := s.Spec.Variants[s.Variant].MaxBatch; f.loaded > 0 {
		out.Memory = []profiler.Memory{
			{Variant: name, DeviceType: device, Loaded: f.loaded, Batch: n, AtBatch: f.most},
		}
	}
	if f.fails > 0 {
		out.Failures = []profiler.Failure{{Variant: name, DeviceType: device, Batch: f.fails, Reason: "out of memory"}}
	}
	return out, nil
}

type rig struct {
	*host
	*fixed
	quick *fixed
	store *store.Functions
	m     *Manager
	c     *Client
}

func newRig(t testing.TB, dir string) *rig {
	t.Helper()
	kept, err := store.OpenFunctions(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		host: &host{t: t, bound: make(map[serving.VariantID]string)}, fixed: &fixed{us: 3000}, quick: &fixed{us: 2000},
		store: kept,
	}
	base := &serving.Spec{
		DeviceTypes: []serving.DeviceType{
			{Name: "cpu", Cores: 2, MemoryBytes: 1 << 20},
		}, Workers: []serving.Worker{{Name: "w"}},
	}
	base, _, _ = base.WithApp(serving.App{
		Name: "base", Weight: 1, QueueLimit: 1, SLO: serving.SLO{Latency: 1, Percentile: 99},
	}, serving.Variant{Name: "base", MaxBatch: 1}, nil)
	r.m, err = Restore(t.Context(), Config{
		Store: kept, Predictor: r.fixed, Quick: r.quick, Statistic: profile.P95, Spec: base,
		App: serving.App{Weight: 1, QueueLimit: 10}, Events: 5,
	}, r.host)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(Handler(r.m, 10_000))
	r.c = &Client{Address: strings.TrimPrefix(s.URL, "http://")}
	t.Cleanup(func() { s.Close(); _ = kept.Close() })
	return r
}

func model(t *testing.T, g *onnxmodel.Graph) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := g.Write(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func batched(name string) *onnxmodel.Graph {
	return onnxmodel.NewGraph(name).Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 2).Node("Identity", []string{"x"},
		[]string{"y"}).Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 2)
}

var usual = Deployment{
	LatencyMS: 50, Percentile: 99, MaxBatch: 4, MinInstances: 1, ColdWaitMS: 1.5, Labels: map[string]string{"k": "v"},
}

// What was measured of a model is what it takes, also after a restart, unless its deployment says what it takes. One
// that takes more than a machine has is refused.
func TestDeploymentsTakeTheMemoryThatWasMeasured(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	r := newRig(t, dir)
	takes := func(r *rig, name string) (loaded, item int64) {
		w, live, err := r.m.Current()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range live {
			if l.Name == name {
				v := w.Spec.Variants[l.Variant]
				return v.MemoryBytes, v.ItemBytes
			}
		}
		t.Fatalf("no function %s", name)
		return 0, 0
	}
	r.loaded, r.most = 100_000, 140_000
	own := usual
	own.MemoryBytes = 5000
	for name, d := range map[string]Deployment{"measured": usual, "said": own} {
		if _, err := r.c.Deploy(ctx, name, model(t, batched(name)), d); err != nil {
			t.Fatal(err)
		}
	}
	if loaded, item := takes(r, "measured"); loaded != 100_000 || item != 10_000 {
		t.Errorf("measured: %d bytes and %d an item", loaded, item)
	}
	if loaded, item := takes(r, "said"); loaded != 5000 || item != 0 {
		t.Errorf("said: %d bytes and %d an item", loaded, item)
	}
	r.loaded, r.most = 2<<20, 2<<20
	if _, err := r.c.Deploy(ctx, "large", model(t, batched("large")), usual); err == nil ||
		!strings.Contains(err.Error(), "the largest machine has") {
		t.Errorf("a model that no machine has the memory for: %v", err)
	}
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	if loaded, item := takes(newRig(t, dir), "measured"); loaded != 100_000 || item != 10_000 {
		t.Errorf("after a restart: %d bytes and %d an item", loaded, item)
	}
}

// Plans have no batches of a function that failed for want of memory when it was measured.
func TestDeploymentsKeepWhatMemoryLacks(t *testing.T) {
	r := newRig(t, t.TempDir())
	r.fails = usual.MaxBatch
	if _, err := r.c.Deploy(t.Context(), "f", model(t, batched("f")), usual); err != nil {
		t.Fatal(err)
	}
	g := r.grown[len(r.grown)-1]
	v := r.open[0].Variant
	if most := usual.MaxBatch; g.Profile.Latency(v, 0, most/2, 1) >= profile.Unknown ||
		g.Profile.Latency(v, 0, most, 1) < profile.Unknown {
		t.Errorf("%v for %d items, %v for %d", g.Profile.Latency(v, 0, most/2, 1), most/2,
			g.Profile.Latency(v, 0, most, 1), most)
	}
}

func TestDeployments(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	r := newRig(t, dir)
	s, err := r.c.Deploy(ctx, "f", model(t, batched("one")), usual)
	if err != nil || s.Version != 1 || s.MaxBatch != 4 || s.ColdWaitMS != 1.5 || s.State != Ready ||
		s.Labels["k"] != "v" {
		t.Fatalf("%+v, %v", s, err)
	}
	if s, err = r.c.Deploy(ctx, "f", model(t, batched("two")), usual); err != nil || s.Version != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	g := r.grown[1]
	app := g.Spec.Apps[1]
	if len(g.Spec.Apps) != 2 || !g.Spec.Variants[1].Retired || g.Spec.Variants[2].Retired || app.MinInstances != 1 ||
		app.ColdWait != 1500*time.Microsecond || app.QueueLimit != 10 || r.open[0].Variant != 2 {
		t.Errorf("%+v", g.Spec)
	}
	if g.Profile.Latency(2, 0, 1, 1) != 3*time.Millisecond || g.Profile.Latency(0, 0, 1, 1) != profile.Unknown ||
		r.bound[2] != r.store.ModelPath(s.Model) {
		t.Errorf("latency %v, of the app without a profile %v; bound to %s", g.Profile.Latency(2, 0, 1, 1),
			g.Profile.Latency(0, 0, 1, 1), r.bound[2])
	}
	if _, err := r.c.Deploy(ctx, "g", model(t, batched("two")), usual); err != nil {
		t.Fatal(err)
	}
	if err := r.c.Delete(ctx, "g"); err != nil {
		t.Fatal(err)
	}
	if last := r.grown[len(r.grown)-1]; !last.Spec.Apps[2].Closed || len(r.open) != 1 {
		t.Errorf("%+v", last.Spec.Apps)
	}
	list, err := r.c.List(ctx)
	if err != nil || len(list) != 1 || list[0].Name != "f" {
		t.Errorf("%+v %v", list, err)
	}
	events, err := r.c.Logs(ctx, "g", 0, 10) // also of one that is gone
	if err != nil || !slices.EqualFunc(events, []string{"deploy", "delete"}, func(e Event, kind string) bool {
		return e.Kind == kind
	}) {
		t.Errorf("%+v %v", events, err)
	}
	if events, err = r.c.Logs(ctx, "g", events[0].Seq, 10); err != nil || len(events) != 1 {
		t.Errorf("%+v %v", events, err)
	}

	// Another process restores it as it was, without predicting its latency again. A function whose file was damaged is
	// left out, and can be deleted.
	if _, err := r.c.Deploy(ctx, "h", model(t, batched("three")), usual); err != nil {
		t.Fatal(err)
	}
	damaged, err := r.c.Get(ctx, "h")
	if err == nil {
		err = os.Truncate(r.store.ModelPath(damaged.Model), 3)
	}
	if err := errors.Join(err, r.store.Close()); err != nil {
		t.Fatal(err)
	}
	again := newRig(t, dir)
	w, live, err := again.m.Current()
	if err != nil || len(live) != 1 || live[0].Version != 2 || len(w.Spec.Apps) != 2 ||
		w.Profile.Latency(live[0].Variant, 0, 1, 1) != 3*time.Millisecond || again.asked != 0 {
		t.Errorf("%+v, %v, asked %d times", live, err, again.asked)
	}
	if lost := again.m.Unrestored(); len(lost) != 1 || !strings.Contains(lost[0].Error(), `"h"`) {
		t.Errorf("%v", lost)
	}
	if err := errors.Join(again.c.Delete(ctx, "h"), again.c.Delete(ctx, "f")); err != nil ||
		len(again.m.Unrestored()) != 0 {
		t.Error(err)
	}
	if list, err := again.store.List(); err != nil || len(list) != 0 {
		t.Errorf("%+v %v", list, err)
	}
}

func TestRefusals(t *testing.T) {
	r, ctx := newRig(t, t.TempDir()), t.Context()
	good := model(t, batched("one"))
	if _, err := r.c.Deploy(ctx, "f", good, usual); err != nil {
		t.Fatal(err)
	}
	before := len(r.grown)
	with := func(change func(*Deployment)) Deployment { d := usual; change(&d); return d }
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, 10_001), 0o600); err != nil {
		t.Fatal(err)
	}
	fixedBatch := model(t, onnxmodel.Identity(onnxmodel.Float32, 3))
	for _, x := range []struct {
		name, model string
		d           Deployment
		status      int
		want        string
	}{
		{"base", good, usual, 400, "is an app of the server's configuration"},
		{"..", good, usual, 0, ""}, // never reaches the handler under that name
		{"a/b", good, usual, 400, "cannot be a function's name"},
		{".hidden", good, usual, 400, "cannot be a function's name"},
		{"f", fixedBatch, with(func(d *Deployment) { d.MaxBatch = 1 }), 400, "other tensors than version 1"},
		{"g", fixedBatch, usual, 400, "no batch dimension"},
		{"g", junk, usual, 400, "model"},
		{"g", large, usual, 413, "limit of this server"},
		{"g", good, with(func(d *Deployment) { d.LatencyMS = 0 }), 400, "latency_ms"},
		{"g", good, with(func(d *Deployment) { d.Percentile = 101 }), 400, "percentile"},
		{"g", good, with(func(d *Deployment) { d.MaxBatch = -1 }), 400, "max_batch"},
		{"g", good, with(func(d *Deployment) { d.MaxInstances, d.MinInstances = 1, 2 }), 400, "max_instances"},
		{"g", good, with(func(d *Deployment) { d.MemoryBytes = 2 << 20 }), 400, "largest machine"},
		{"g", good, with(func(d *Deployment) { d.Profile = "guess" }), 400, "want measure or predict"},
		{"g", good, with(func(d *Deployment) { d.Labels = map[string]string{"a": "\x01"} }), 400, "labels"},
	} {
		_, err := r.c.Deploy(ctx, x.name, x.model, x.d)
		var refused *Refusal
		if err == nil || x.status > 0 && (!errors.As(err, &refused) || refused.Status != x.status ||
			!strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s of %s: %v, want %d with %q", x.name, filepath.Base(x.model), err, x.status, x.want)
		}
	}
	r.refuses = errors.New("too slow for it")
	if _, err := r.c.Deploy(ctx, "g", good, usual); err == nil || !strings.Contains(err.Error(), "too slow for it") {
		t.Error(err)
	}
	r.refuses, r.err = nil, errors.New("the runtime says no")
	if _, err := r.c.Deploy(ctx, "g", good, usual); err == nil ||
		!strings.Contains(err.Error(), "the runtime says no") {
		t.Error(err)
	}
	if len(r.grown) != before {
		t.Errorf("the world grew %d times from deployments that were refused", len(r.grown)-before)
	}
	if list, err := r.store.List(); err != nil || len(list) != 1 {
		t.Errorf("%+v %v: want f alone", list, err)
	}
	if _, err := r.c.Logs(ctx, "nobody", 0, 1); err == nil {
		t.Error("logs of a function that never was")
	}
	if _, err := r.c.Get(ctx, "g"); err == nil {
		t.Error("a function that was refused is there")
	}
}

// Requests that no client of ours sends.
func TestHandlerRefusesWhatItDoesNotKnow(t *testing.T) {
	r := newRig(t, t.TempDir())
	h := sha256.Sum256([]byte("x"))
	sum := hex.EncodeToString(h[:])
	for _, x := range []struct {
		method, path, kind, body string
		want                     int
	}{
		{"PUT", PathFunctions + "f", "text/plain", "{}", 400},
		{"PUT", PathFunctions + "f", "application/json", "{", 400},
		{"PUT", PathFunctions + "f", "application/json", `{"latency_ms": 1, "more": 2}`, 400},
		{"PUT", PathFunctions + "f", "application/json", `{"latency_ms": 1} {}`, 400},
		{
			"PUT", PathFunctions + "f", "application/json", `{"labels": {"a": "` + strings.Repeat("x", maxDeployment) +
				`"}}`, 413,
		},
		{
			"PUT", PathFunctions + "f", "application/json", `{"model_sha256": "` + sum +
				`", "latency_ms": 1, "percentile": 99}`, 404,
		},
		{
			"PUT", PathFunctions + "f", "application/json",
			`{"model_sha256": "../../../etc/passwd", "latency_ms": 1, "percentile": 99}`, 404,
		},
		{
			"PUT", PathFunctions + "..%2f..%2fx", "application/json", `{"model_sha256": "` + sum +
				`", "latency_ms": 1, "percentile": 99}`, 400,
		},
		{"PUT", PathModels + sum, "", "y", 400},
		{"PUT", PathModels + sum, "", "x", 200},
		{"PUT", PathModels + strings.ToUpper(sum), "", "x", 400},
		{"PUT", PathModels + "..%2fx", "", "x", 400},
		{"GET", PathFunctions + "f/logs?limit=-1", "", "", 400},
		{"POST", PathFunctions + "f", "", "", 405},
		{"DELETE", PathFunctions + "f", "", "", 404},
	} {
		req, err := http.NewRequestWithContext(t.Context(), x.method, "http://"+r.c.Address+x.path,
			strings.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", x.kind)
		w, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		if w.StatusCode != x.want {
			t.Errorf("%s %s %.60s: %d, want %d", x.method, x.path, x.body, w.StatusCode, x.want)
		}
	}
}
