package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/runtime/native"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

const reloaded = `
version: 1
device_types: [{name: local, cores: 2}]
workers: [{name: here}]
models: {repository: models}
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "off"}
apps:
`

const sums = `
  - name: sums
    slo: {latency: 1s}
    variants:
      - {name: m0, accuracy: 0.8}
`

// reloading is a server whose file changes while it runs.
type reloading struct {
	t    *testing.T
	s    *Server
	path string
}

// serveReloaded starts a server of a file whose three models add 1, 2 and 3.
func serveReloaded(t *testing.T, text string, beside ...*profiler.File) *reloading {
	t.Helper()
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skip(err)
	}
	r := &reloading{t: t, path: hosttest.Write(t, text)}
	dir := filepath.Dir(r.path)
	for k := range 3 {
		addingModel(t, filepath.Join(dir, "models", fmt.Sprint("m", k), "1", "model.onnx"), float32(1+k))
	}
	for _, f := range beside {
		if err := f.WriteFile(filepath.Join(dir, "profile.json")); err != nil {
			t.Fatal(err)
		}
	}
	o, err := host.Open(r.path, host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	begin := func() (*host.Profiled, error) { return o.Begin(t.Context()) }
	if len(beside) > 0 {
		begin = func() (*host.Profiled, error) { return o.Profile() }
	}
	p, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	if r.s, err = New(t.Context(), p, Options{Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.s.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// says writes the file, has the server read it, and checks what changes.
func (r *reloading) says(text string, want ...functions.AppChange) {
	r.t.Helper()
	if err := os.WriteFile(r.path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	limit, done := context.WithTimeout(r.t.Context(), time.Minute)
	defer done()
	got, err := r.s.service.catalog.reload(limit)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(got) != len(want) {
		r.t.Fatalf("changes %+v, want %+v", got, want)
	}
	for k := range want {
		if got[k].App != want[k].App || got[k].Change != want[k].Change ||
			!strings.Contains(got[k].Error, want[k].Error) || (got[k].Error == "") != (want[k].Error == "") {
			r.t.Errorf("change %+v, want %+v", got[k], want[k])
		}
	}
}

// refused writes a file that changes nothing.
func (r *reloading) refused(text, want string) {
	r.t.Helper()
	if err := os.WriteFile(r.path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.s.service.catalog.reload(r.t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		r.t.Errorf("error %v, want one with %q", err, want)
	}
}

// ask has a model answer, and returns the first number of its output.
func (r *reloading) ask(name string) (float32, error) {
	m, ok := r.s.service.Lookup(name)
	if !ok || m.App == serving.None {
		return 0, fmt.Errorf("no model %q", name)
	}
	x := tensor.Tensor{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)}
	out, err := r.s.service.Chain(server.Links{})(r.t.Context(), &dataplane.Request{
		App: m.App, Generation: m.Generation, Items: 1, Variant: serving.None, Inputs: []tensor.Tensor{x},
	})
	if ended := (*dataplane.Error)(nil); errors.As(err, &ended) && ended.Closed {
		return r.ask(name) // as the front end does: another app has the name since
	}
	if err != nil {
		return 0, err
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(out.Outputs[0].Data)), nil
}

// variants lists those of an app with their accuracies.
func (r *reloading) variants(name string) (out []string) {
	m, _ := r.s.service.Lookup(name)
	spec := r.s.service.spec.Load()
	for _, s := range spec.Apps[m.App].Stages {
		for _, v := range spec.Stages[s].Variants {
			out = append(out, fmt.Sprint(spec.Variants[v].Name, " ", spec.Variants[v].Accuracy))
		}
	}
	return out
}

// Apps with several variants and stages come, change and go as a file says that is read anew, under traffic of which no
// query is lost. What is wrong changes nothing.
func TestReload(t *testing.T) {
	r := serveReloaded(t, reloaded+sums)
	var answered atomic.Int64
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := r.ask("sums"); err != nil {
				t.Errorf("a query to an app that stays: %v", err)
			}
			answered.Add(1)
		}
	})

	r.says(reloaded + sums)
	before, _ := r.s.service.Lookup("sums")
	changed := functions.AppChange{App: "sums", Change: functions.Changed}
	r.says(reloaded+strings.Replace(sums, "1s", "900ms", 1), changed)
	if m, _ := r.s.service.Lookup("sums"); m != before || r.s.service.spec.Load().Apps[m.App].SLO.Latency !=
		900*time.Millisecond {
		t.Error("another objective alone takes another app, or is not in force")
	}
	r.says(reloaded+strings.Replace(sums, "1s", "1us", 1),
		functions.AppChange{App: "sums", Change: functions.Changed, Error: "no plan can be made"})
	r.says(reloaded+sums, changed)
	r.says(reloaded+sums+"      - {name: m1, accuracy: 0.9}\n", changed)
	if got := fmt.Sprint(r.variants("sums")); got != "[m0 0.8 m1 0.9]" {
		t.Errorf("variants %s after one was added", got)
	}
	const twice = `
  - name: twice
    slo: {latency: 2s}
    accuracy_floor: 0.5
    inputs: [{name: x, datatype: FP32, shape: [-1, 2]}]
    outputs: [{name: y, datatype: FP32, shape: [-1, 2]}]
    stages:
      - {name: first, variants: [{name: m0, accuracy: 0.8}, {name: m1, accuracy: 0.9}], next: [{to: second}]}
      - {name: second, inputs: {x: y}, variants: [{name: m2, accuracy: 1}]}
`
	r.says(reloaded+sums+twice, changed, functions.AppChange{App: "twice", Change: functions.Added})
	if got := fmt.Sprint(r.variants("sums"), r.variants("twice")); got != "[m0 0.8] [m0 0.8 m1 0.9 m2 1]" {
		t.Errorf("variants %s after one was taken away, and an app was added", got)
	}
	if y, err := r.ask("twice"); err != nil || y != 1+3 && y != 2+3 {
		t.Errorf("the graph answers %v, %v", y, err)
	}

	r.refused(strings.Replace(reloaded, "cores: 2", "cores: 1", 1)+sums, "device_types differs")
	r.refused(reloaded+sums+"    flour: 1\n", "flour")
	r.says(strings.Replace(reloaded+sums+twice, "name: m2", "name: m7", 1),
		functions.AppChange{App: "twice", Change: functions.Changed, Error: `"m7": not found`})
	r.says(strings.Replace(reloaded+sums+twice, "latency: 2s", "latency: 1us", 1),
		functions.AppChange{App: "twice", Change: functions.Changed, Error: "no plan can be made"})
	if y, err := r.ask("twice"); err != nil || y != 1+3 && y != 2+3 {
		t.Errorf("after it could not be changed the graph answers %v, %v", y, err)
	}
	r.says(reloaded+sums, functions.AppChange{App: "twice", Change: functions.Removed})
	if _, err := r.ask("twice"); err == nil {
		t.Error("an app that is gone answers")
	}

	close(stop)
	all.Wait()
	if answered.Load() == 0 {
		t.Error("no query was sent meanwhile")
	}
	r.s.plane.Inspect(func(e *engine.Engine) {
		if err := e.Check(); err != nil {
			t.Error(err)
		}
	})
}

// What a client has unloaded stays so, and is what the file says when the client loads it again.
func TestReloadLeavesUnloadedModels(t *testing.T) {
	r := serveReloaded(t, reloaded+sums)
	m, _ := r.s.service.Lookup("sums")
	if err := r.s.service.Unload(t.Context(), m, false); err != nil {
		t.Fatal(err)
	}
	r.says(reloaded + sums + "      - {name: m1, accuracy: 0.9}\n")
	if _, err := r.ask("sums"); err == nil {
		t.Error("an unloaded app answers after a reload")
	}
	if err := r.s.service.Load(t.Context(), "sums", server.Loading{}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r.variants("sums")); got != "[m0 0.8 m1 0.9]" {
		t.Errorf("loaded again it has variants %s", got)
	}
}

// What a profile says of accuracies and confidences counts after a reload, and not before. Latencies that are in force
// stay.
func TestReloadTakesUpProfiles(t *testing.T) {
	text := "profiles: [profile.json]" + reloaded + sums + "      - {name: m1, accuracy: 0.9}\n"
	f := &profiler.File{Version: profiler.Version}
	for _, v := range []string{"m0", "m1"} {
		f.Points = append(f.Points, profiler.Point{
			Variant: v, DeviceType: "local", Batch: 1, Concurrency: 1, Samples: 10, Mean: 1000, P50: 1000, P90: 1000,
			P95: 1000, P99: 1000,
		})
	}
	r := serveReloaded(t, text, f)
	r.says(text)
	f.Confidences = []profiler.Confidence{{Variant: "m0", By: "margin", Samples: 1000, Bins: []profiler.ConfidenceBin{
		{Share: 0.5, Accuracy: 0.6, Others: map[string]float64{"m1": 0.8}},
		{From: 0.5, Share: 0.5, Accuracy: 1, Others: map[string]float64{"m1": 1}},
	}}}
	if err := f.WriteFile(filepath.Join(filepath.Dir(r.path), "profile.json")); err != nil {
		t.Fatal(err)
	}
	r.says(text, functions.AppChange{App: "sums", Change: functions.Changed})
	m, _ := r.s.service.Lookup("sums")
	spec := r.s.service.spec.Load()
	s := &spec.Stages[spec.Source(m.App)]
	if len(s.Confidences) != 1 || spec.Variants[s.Confidences[0].Variant].Name != "m0" {
		t.Errorf("confidences %+v, want those of m0", s.Confidences)
	}
	r.says(text)
}

// Where memory does not hold an app beside what it is to take the place of, a reload says so at once, and that stays.
func TestReloadNeedsRoom(t *testing.T) {
	text := strings.Replace(reloaded, "cores: 2", "cores: 2, memory: 100MiB", 1) +
		strings.Replace(sums, "0.8}", "0.8, memory: 60MiB}", 1)
	r := serveReloaded(t, text)
	r.says(strings.Replace(text, "0.8,", "0.7,", 1),
		functions.AppChange{App: "sums", Change: functions.Changed, Error: `no room for stage "sums"`})
	if y, err := r.ask("sums"); err != nil || y != 1 {
		t.Errorf("it answers %v, %v", y, err)
	}
}
