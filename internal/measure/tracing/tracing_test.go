package tracing

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
)

// nowhere is an address that refuses connections.
func nowhere(tb testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func tracer(tb testing.TB, endpoint string, share float64, trouble func(error)) *Tracer {
	t, err := New(tb.Context(), Config{Endpoint: endpoint, Share: share, Name: "test", Trouble: trouble})
	if err != nil {
		tb.Fatal(err)
	}
	t.Follow(func(id serving.QueryID) (*steps.Explanation, bool) {
		return &steps.Explanation{Query: id, App: "a", Outcome: "served", LatencyMS: 3,
			Runs: []steps.Run{{Batch: 1, WaitTotal: 1, StartedS: 0.001, TookMS: 2}}}, true
	}, time.Now())
	return t
}

var answers atomic.Uint64

func answer(_ context.Context, r *dataplane.Request) (*dataplane.Response, error) {
	if r.Accepted != nil {
		r.Accepted(serving.QueryID(answers.Add(1)))
	}
	return &dataplane.Response{}, nil
}

// Far more spans than fit into the queue are made while the collector is away. None of it waits.
func TestServingGoesOnWithoutACollector(t *testing.T) {
	var troubles atomic.Int32
	x := tracer(t, "grpc://"+nowhere(t), 1, func(error) { troubles.Add(1) })
	for range 3 * queueSpans {
		if _, err := x.Infer(t.Context(), &dataplane.Request{}, answer); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	ended, delivered, _ := x.Counts()
	if ended < 3*queueSpans*3 || delivered != 0 {
		t.Errorf("%d spans ended, %d were delivered", ended, delivered)
	}
	if n := len(x.queries.of); n > latestQueries {
		t.Errorf("%d queries are remembered", n)
	}
	if troubles.Load() > 1 {
		t.Errorf("%d troubles were told within a minute", troubles.Load())
	}
}

// Requests for inference have a span, by either version of the protocol.
func TestRequestsHaveSpans(t *testing.T) {
	x := tracer(t, "http://"+nowhere(t), 1, nil)
	defer x.Close()
	h := x.HTTP(http.NotFoundHandler())
	for k, path := range []string{"/v2/models/a/infer", "/v1/models/a:predict"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, nil))
		if n, _, _ := x.Counts(); n != uint64(k)+1 {
			t.Errorf("POST %s: %d spans have ended, want %d", path, n, k+1)
		}
	}
}

// BenchmarkRequest is what tracing adds to a request: off, without a sampled request, and with every one sampled.
func BenchmarkRequest(b *testing.B) {
	r := httptest.NewRequest(http.MethodPost, "/v2/models/a/infer", nil)
	handler := func(x *Tracer) http.Handler {
		h := http.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = x.Infer(r.Context(), &dataplane.Request{}, answer)
		}))
		if x != nil {
			h = x.HTTP(h)
		}
		return h
	}
	for _, c := range []struct {
		name string
		of   *Tracer
	}{{"off", nil}, {"unsampled", tracer(b, "http://"+nowhere(b), 0, nil)},
		{"sampled", tracer(b, "http://"+nowhere(b), 1, nil)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			h, w := handler(c.of), httptest.NewRecorder()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}
