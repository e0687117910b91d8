package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/heldport"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	inflessrules "github.com/sluice-serving/sluice/papers/infless/rules"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/tensor"
)

// A model server that is killed with SIGKILL in the middle of a load: every query is answered or refused with an error,
// none hangs, and the rate recovers when the server returns on the same port.
func TestKilledBackend(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	behind := heldport.Address(t)
	remote := write(t, dir, "remote.yaml", `
version: 1
device_types: [{name: any}]
workers: [{name: w, backend: {kind: fake, latency: 1ms}}]
apps:
  - name: echo
    slo: {latency: 1s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: echo, max_batch: 8}]
server: {not_ready: 0s, http: "off", grpc: %q, admin: "off"}
`, behind)
	front := write(t, dir, "front.yaml", `
version: 1
device_types: [{name: any}]
workers: [{name: w, backend: {kind: openinference, address: %q}}]
profiles: [profile.json]
apps:
  - name: app
    slo: {latency: 300ms}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: echo, max_batch: 8}]
server: {not_ready: 0s, http: "off", grpc: "127.0.0.1:0", admin: "off", drain_timeout: 5s}
`, behind)
	write(t, dir, "profile.json", `{"version": 1, "created": "2026-01-01T00:00:00Z", "points": [
  {"variant": "echo", "device_type": "any", "batch": 1, "concurrency": 1, "samples": 100, "mean_us": 2000,
      "stddev_us": 500, "p50_us": 2000, "p90_us": 3000, "p95_us": 3500, "p99_us": 4000, "interpolated": false},
  {"variant": "echo", "device_type": "any", "batch": 8, "concurrency": 1, "samples": 100, "mean_us": 2500,
      "stddev_us": 500, "p50_us": 2500, "p90_us": 3500, "p95_us": 4000, "p99_us": 5000, "interpolated": false}],
 "loads": []}`)
	backend := serve(t, "-f", remote)
	client, err := loadgen.DialGRPC(serve(t, "-f", front).grpc, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answers(t, client)

	samples, err := loadgen.Synthetic([]tensor.Spec{{Name: "x", DType: tensor.FP32, Shape: []int64{-1, 4}}}, 8, 1)
	if err != nil {
		t.Fatal(err)
	}
	spec := workload.Spec{Seed: 1, DurationS: 8, Apps: []workload.AppSpec{{App: "app", Rate: 200, Samples: 8}}}
	src, err := spec.Source(func(string) (serving.AppID, error) { return 0, nil })
	if err != nil {
		t.Fatal(err)
	}
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		time.Sleep(2 * time.Second)
		_ = backend.Process.Kill()
		_ = backend.Wait()
		time.Sleep(time.Second)
		sluice(t, "serve", "-f", remote)
	}()
	r, err := loadgen.Run(t.Context(), client, []loadgen.App{
		{Name: "app", SLO: serving.SLO{Latency: 300 * time.Millisecond, Percentile: 99}, Samples: samples},
	}, src,
		loadgen.Options{Duration: 8 * time.Second, Timeout: 10 * time.Second})
	<-killed
	if err != nil {
		t.Fatal(err)
	}
	s := &r.Report.Overall
	if ended := s.Served + s.Dropped + s.Refused + s.Failed + s.Cancelled; ended != s.Offered {
		t.Errorf("%d of %d queries ended", ended, s.Offered)
	}
	if s.Latency.Max > 9000 {
		t.Errorf("a query took %.0f ms: it hung until the client gave up", s.Latency.Max)
	}
	for _, x := range r.Errors {
		t.Logf("%d %s: %s", x.Count, x.Outcome, x.Message)
	}
	before, after := int64(0), int64(0)
	series := r.Report.Apps[0].Series
	for _, p := range series {
		if p.AtS == 1 {
			before = p.Served
		}
		if p.AtS == 7 {
			after = p.Served
		}
	}
	if s.Served == s.Offered {
		t.Error("no query was lost to the killed server: it was not killed while the load ran")
	}
	if float64(after) < 0.8*float64(before) {
		var b bytes.Buffer
		_ = r.Report.Table(&b)
		t.Errorf("%d queries answered in the second before the kill, %d in the last second: the rate did not "+
			"recover\n%s", before, after, b.String())
	}
}

// answers waits until a server answers queries.
func answers(t *testing.T, client loadgen.Target) {
	t.Helper()
	var last error
	for begun := time.Now(); time.Since(begun) < 30*time.Second; time.Sleep(50 * time.Millisecond) {
		ctx, done := context.WithTimeout(t.Context(), time.Second)
		_, last = client.Infer(ctx, &loadgen.Request{
			Model: "app", Inputs: []tensor.Tensor{
				{Name: "x", DType: tensor.FP32, Shape: []int64{1, 4}, Data: make([]byte, 16)},
			},
		})
		done()
		if last == nil {
			return
		}
	}
	t.Fatalf("the server does not answer: %v", last)
}

// Learned idle times of an app survive kill -9. An earlier server has saved that calls came every 90 seconds, the last
// one 48 seconds before this server starts. Without a call, the app is launched shortly before the next call is due. A
// server that is killed then is followed by one that has it warm at once. A call that this one has answered is in the
// store after it, too, is killed.
func TestKilledServerRemembers(t *testing.T) {
	t.Parallel()
	p := newPacked(t, "keep: lsth")
	learned := inflessrules.NewRateBands(func() inflessrules.KeepAlive { return inflessrules.NewLSTH() })
	const every = 90 * time.Second
	now := serving.Time(0)
	for range 8 {
		now = now.Add(every)
		learned.Invoked(now, heavy, every)
	}
	type record struct {
		Saved  time.Time     `json:"saved"`
		Idle   time.Duration `json:"idle_ns"`
		Memory []byte        `json:"memory"`
	}
	data := filepath.Join(p.dir, "data")
	open := func() *store.Functions {
		s, err := store.OpenFunctions(data)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	b, err := json.Marshal(record{time.Now(), 48 * time.Second, learned.Remember(heavy, now)})
	if err == nil {
		err = errors.Join(s.Keep(store.IdleTable, map[string][]byte{"heavy": b}), s.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	begin := func(journal string) *server {
		return serve(t, "-f", p.file, "--journal", filepath.Join(p.dir, journal))
	}
	kill := func(c *server) {
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
	}
	c := begin("first.journal")
	if n, _, _ := p.live(t, heavy); n != 0 {
		t.Logf("%d instances at the start: this machine took long to get there", n)
	}
	until(t, func() bool { n, _, _ := p.live(t, heavy); return n > 0 })
	kill(c)
	c = begin("second.journal")
	until(t, func() bool { n, _, _ := p.live(t, heavy); return n > 0 })
	called := time.Now()
	if status, text := p.call(t.Context()); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	// kept reads what a folder keeps of the app.
	kept := func(s *store.Functions) (r record, err error) {
		b, err = s.Get(store.IdleTable, "heavy")
		if err == nil {
			err = json.Unmarshal(b, &r)
		}
		return r, err
	}
	until(t, func() bool { // a copy of the store, which the server keeps locked, has it: all is saved every few seconds
		copied := t.TempDir()
		if os.CopyFS(copied, os.DirFS(data)) != nil {
			return false
		}
		s, err := store.OpenFunctions(copied)
		if err != nil { // copied while the server wrote
			return false
		}
		defer s.Close()
		r, err := kept(s)
		return err == nil && r.Saved.After(called)
	})
	kill(c)
	s = open()
	defer s.Close()
	r, err := kept(s)
	if err != nil || r.Saved.Before(called) || r.Idle > r.Saved.Sub(called) {
		t.Fatalf("%s: %v, want what was learned after %v", b, err, called)
	}
	before, after := inflessrules.NewRateBands(nil), inflessrules.NewRateBands(nil)
	if err := errors.Join(before.Recall(heavy, learned.Remember(heavy, now), 0, 0),
		after.Recall(heavy, r.Memory, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if x, y := before.Remember(heavy, 0), after.Remember(heavy, 0); bytes.Equal(x, y) {
		t.Error("the call before the kill has taught nothing")
	}
}
