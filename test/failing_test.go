package test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/heldport"
)

// modelServer is a remote server that gives back what it gets, fails, or gives an answer that does not fit.
type modelServer struct {
	pb.UnimplementedGRPCInferenceServiceServer
	fails, wrong, flaps atomic.Bool // flaps: two of three answers are errors
	asked, hung         atomic.Int64
	delay               atomic.Int64 // of an answer, in ns
	hangs               atomic.Pointer[chan struct{}]
}

// hang has the server answer nothing until release.
func (m *modelServer) hang() { c := make(chan struct{}); m.hangs.Store(&c) }

func (m *modelServer) release() { close(*m.hangs.Swap(nil)) }

func (*modelServer) ModelReady(context.Context, *pb.ModelReadyRequest) (*pb.ModelReadyResponse, error) {
	return &pb.ModelReadyResponse{Ready: true}, nil
}

func (*modelServer) ModelMetadata(context.Context, *pb.ModelMetadataRequest) (*pb.ModelMetadataResponse, error) {
	return &pb.ModelMetadataResponse{
		Outputs: []*pb.ModelMetadataResponse_TensorMetadata{{Name: "x", Datatype: "FP32", Shape: []int64{-1, 4}}},
	}, nil
}

func (m *modelServer) ModelInfer(ctx context.Context, r *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	n := m.asked.Add(1)
	if until := m.hangs.Load(); until != nil {
		m.hung.Add(1)
		select {
		case <-*until:
		case <-ctx.Done():
		}
		return nil, status.Error(codes.Internal, "it hung")
	}
	time.Sleep(time.Duration(m.delay.Load()))
	if m.fails.Load() || m.flaps.Load() && n%3 > 0 {
		return nil, status.Error(codes.Internal, "a secret of the model server")
	}
	in, err := oip.DecodeRequest(r, nil)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if m.wrong.Load() {
		in[0].Name = "other"
	}
	out := &pb.ModelInferResponse{}
	oip.EncodeOutputs(out, in, nil)
	return out, nil
}

// startModelServer returns the address of a running model server.
func startModelServer(t *testing.T, m pb.GRPCInferenceServiceServer) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterGRPCInferenceServiceServer(s, m)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-ended })
	return l.Addr().String()
}

// One of two model servers fails every query at once: no query fails, and it soon gets next to none. It comes back when
// it works again. An app whose only server is absent keeps nobody from serving the others, and readiness says which.
func TestFailingModelServers(t *testing.T) {
	t.Parallel()
	failing, healthy := &modelServer{}, &modelServer{}
	failing.fails.Store(true)
	absent := heldport.Address(t)
	dir := t.TempDir()
	file := write(t, dir, "sluice.yaml", `
version: 1
device_types: [{name: any}]
workers:
  - {name: a, backend: {kind: openinference, address: %q}}
  - {name: b, backend: {kind: openinference, address: %q}}
  - {name: c, backend: {kind: openinference, address: %q}}
profiles: [profile.json]
system: {router: shortestqueue, batcher: greedy}
apps:
  - name: app
    slo: {latency: 1s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: m, max_batch: 8}]
  - name: lonely
    slo: {latency: 1s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: n, max_batch: 8}]
placement: [{worker: a, app: app}, {worker: b, app: app}, {worker: c, app: lonely}]
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "off"}
`, startModelServer(t, failing), startModelServer(t, healthy), absent)
	point := func(v string, batch int) string {
		return fmt.Sprintf(`{"variant": %q, "device_type": "any", "batch": %d, "concurrency": 1, "samples": 100,
 "mean_us": 2000, "stddev_us": 500, "p50_us": 2000, "p90_us": 3000, "p95_us": 3500, "p99_us": 4000}`, v, batch)
	}
	write(t, dir, "profile.json", `{"version": 1, "created": "2026-01-01T00:00:00Z", "points": [%s,%s,%s,%s],
 "loads": []}`, point("m", 1), point("m", 8), point("n", 1), point("n", 8))
	c := serve(t, "-f", file)
	url := c.url() + "/v2"
	untilStatus(t, url+"/models/app/ready", 200)
	infer := func() (int, string) { return answered(http.MethodPost, url+"/models/app/infer", oneQuery) }
	waitForBoth(t, failing, healthy, infer)
	for k := range 200 {
		if code, body := infer(); code != 200 {
			t.Fatalf("query %d: %d %s", k, code, body)
		}
	}
	if n := failing.asked.Load(); n > 20 {
		t.Errorf("the failing server was asked %d times, the healthy one %d times", n, healthy.asked.Load())
	}
	code, body := answered(http.MethodGet, url+"/health/ready", "")
	if code != 503 || !strings.Contains(body, "lonely") {
		t.Errorf("readiness: %d %s: want 503 that names the app", code, body)
	}
	if out := c.said.String(); !strings.Contains(out, "waiting for model") ||
		!strings.Contains(out, "a secret of the model server") || !strings.Contains(out, "gets no queries") {
		t.Errorf("the log does not say what happened:\n%s", out)
	}
	failing.fails.Store(false)
	before := failing.asked.Load()
	for begun := time.Now(); failing.asked.Load() < before+10; time.Sleep(5 * time.Millisecond) {
		if code, body := infer(); code != 200 {
			t.Fatalf("after the failing server recovered: %d %s", code, body)
		}
		if time.Since(begun) > 30*time.Second {
			t.Fatal("the server that works again gets no queries")
		}
	}
	// Both fail: the error does not repeat what the server said.
	failing.fails.Store(true)
	healthy.fails.Store(true)
	if code, body := infer(); code != 500 || strings.Contains(body, "secret") || strings.Contains(body, "127.0.0.1") {
		t.Errorf("both servers fail: %d %s", code, body)
	}
	failing.fails.Store(false)
	healthy.fails.Store(false)
	failing.wrong.Store(true)
	healthy.wrong.Store(true)
	if code, body := infer(); code != 502 {
		t.Errorf("both servers give wrong answers: %d %s, want 502", code, body)
	}
}

// waitForBoth sends queries until both servers were asked.
func waitForBoth(t *testing.T, a, b *modelServer, infer func() (int, string)) {
	t.Helper()
	for begun := time.Now(); a.asked.Load() == 0 || b.asked.Load() == 0; {
		if code, body := infer(); code != 200 {
			t.Fatalf("%d %s", code, body)
		}
		if time.Since(begun) > 30*time.Second {
			t.Fatalf("asked %d and %d times", a.asked.Load(), b.asked.Load())
		}
	}
}
