package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// manyApps is a configuration of n models on one machine that only waits.
func manyApps(n int) string {
	var b strings.Builder
	b.WriteString(`
version: 1
server: {http: "127.0.0.1:0", grpc: "off", admin: "off", not_ready: 0s}
device_types: [{name: d}]
workers: [{name: w, backend: {kind: fake, latency: 1ms}}]
apps:
`)
	for k := range n {
		fmt.Fprintf(&b, "  - {name: a%d, slo: {latency: 1s}, variants: [{name: v%d, max_batch: 4}],\n"+
			"     inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]}\n", k, k)
	}
	return b.String()
}

// stepped serves n models, and counts the engine's steps from when it is ready.
func stepped(t testing.TB, n int) (s *Server, steps *atomic.Int64) {
	t.Helper()
	steps = new(atomic.Int64)
	s = running(t, manyApps(n), Options{
		Observe: func(serving.Time, []engine.Input, []engine.Decision) { steps.Add(1) },
	})
	steps.Store(0)
	return s, steps
}

// probe asks a path n times.
func probe(t testing.TB, s *Server, path string, n int) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for range n {
		w := httptest.NewRecorder()
		if s.Handler().ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// Probes of a server and of its models, and reading metrics, are answered from what is kept: they are not steps of the
// engine, which queries wait for.
func TestProbesAreNoSteps(t *testing.T) {
	const probes = 200
	s, steps := stepped(t, 20)
	probe(t, s, "/v2/health/ready", probes)
	probe(t, s, "/v2/models/a7/ready", probes)
	probe(t, s, "/v2/models/a7/versions/v7/ready", probes)
	for range probes {
		if _, err := s.Metrics().Gather(); err != nil {
			t.Fatal(err)
		}
		s.ReadyApps()
	}
	// A few are the engine's own wake-ups.
	if got := steps.Load(); got > probes/2 {
		t.Errorf("%d steps for 5 times %d probes of an idle server", got, probes)
	}
}

// What is kept follows what happens: a model that a client unloads is not ready when the unload is answered.
func TestReadinessFollows(t *testing.T) {
	text := strings.Replace(manyApps(3), "server: {", "server: {model_control: true, ", 1)
	s := running(t, text, Options{})
	defer http.DefaultClient.CloseIdleConnections()
	ready := func(app string) bool { return s.ReadyApps()[app] }
	for range 20 {
		for _, want := range []bool{false, true} {
			action := map[bool]string{false: "unload", true: "load"}[want]
			if got := post(t, s.HTTPAddr()+"/v2/repository/models/a1/"+action, ""); got != http.StatusOK {
				t.Fatalf("%s: %d", action, got)
			}
			if ready("a1") != want || !ready("a0") || !ready("a2") {
				t.Fatalf("after %s: %v", action, s.ReadyApps())
			}
		}
	}
}

// BenchmarkProbe asks a server whether it is ready. Beside time and memory it prints how many steps of the engine a
// probe costs.
func BenchmarkProbe(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("models=%d", n), func(b *testing.B) {
			s, steps := stepped(b, n)
			b.ReportAllocs()
			b.ResetTimer()
			probe(b, s, "/v2/health/ready", b.N)
			b.ReportMetric(float64(steps.Load())/float64(b.N), "steps/op")
		})
	}
}
