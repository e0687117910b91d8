package test

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// spans collects what a server sends, over HTTP and over gRPC.
type spans struct {
	collector.UnimplementedTraceServiceServer
	mu   sync.Mutex
	got  []*tracepb.Span
	keys []string // headers of deliveries
}

func (s *spans) add(r *collector.ExportTraceServiceRequest, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, key)
	for _, x := range r.ResourceSpans {
		for _, y := range x.ScopeSpans {
			s.got = append(s.got, y.Spans...)
		}
	}
}

// Export implements the collector's gRPC service.
func (s *spans) Export(ctx context.Context, r *collector.ExportTraceServiceRequest) (
	*collector.ExportTraceServiceResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	s.add(r, strings.Join(md.Get("x-key"), ","))
	return &collector.ExportTraceServiceResponse{}, nil
}

// ServeHTTP implements the collector over HTTP.
func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	m := new(collector.ExportTraceServiceRequest)
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(b, m) != nil {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	s.add(m, r.Header.Get("x-key"))
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// of returns the spans of a trace, each under its name and its parent's, such as request/queue.
func (s *spans) of(trace string) map[string]*tracepb.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	byID := map[string]*tracepb.Span{}
	for _, x := range s.got {
		byID[string(x.SpanId)] = x
	}
	out := map[string]*tracepb.Span{}
	for _, x := range s.got {
		if hex.EncodeToString(x.TraceId) != trace {
			continue
		}
		name := x.Name
		for p := byID[string(x.ParentSpanId)]; p != nil; p = byID[string(p.ParentSpanId)] {
			name = p.Name + "/" + name
		}
		out[name] = x
	}
	return out
}

func attribute(s *tracepb.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.Key == key {
			return strings.Trim(strings.SplitN(a.Value.String(), ":", 2)[1], `"`)
		}
	}
	return ""
}

const traceID, callerSpan = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

// TestTracesOverHTTP sends a request with a trace context to an app of two stages, and one that says it is not to be
// traced, and looks at what arrives at a collector.
func TestTracesOverHTTP(t *testing.T) {
	got := &spans{}
	to := httptest.NewServer(got)
	defer to.Close()
	dir := t.TempDir()
	write(t, dir, "headers", "x-key: secret\n")
	server := serve(t, "-f", write(t, dir, "sluice.yaml", `
version: 1
device_types: [{name: any}]
workers: [{name: w, backend: {kind: fake, latency: 2ms}}]
apps:
  - name: scenes
    slo: {latency: 2s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 2]}]
    stages:
      - {name: find, variants: [{name: find, max_batch: 8}], next: [{to: read}]}
      - {name: read, variants: [{name: read, max_batch: 8}]}
server:
  {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "127.0.0.1:0",
   tracing: {endpoint: "%s", sample: 0, headers: headers}}
`, to.URL))
	ask := func(flags string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			server.url()+"/v2/models/scenes/infer",
			strings.NewReader(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("traceparent", "00-"+traceID+"-"+callerSpan+"-"+flags)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	until(t, func() bool { return ask("00") == http.StatusOK })
	if status := ask("01"); status != http.StatusOK {
		t.Fatal(status)
	}
	want := []string{"request", "request/stage find", "request/stage find/queue", "request/stage find/batch",
		"request/stage find/batch/run", "request/stage read", "request/stage read/queue", "request/stage read/batch",
		"request/stage read/batch/run"}
	until(t, func() bool { return len(got.of(traceID)) >= len(want) })
	have := got.of(traceID)
	for _, name := range want {
		s := have[name]
		if s == nil {
			t.Errorf("there is no span %q", name)
			continue
		}
		if s.EndTimeUnixNano < s.StartTimeUnixNano || s.StartTimeUnixNano < have["request"].StartTimeUnixNano ||
			s.EndTimeUnixNano > have["request"].EndTimeUnixNano {
			t.Errorf("span %q is from %d to %d, its request from %d to %d", name, s.StartTimeUnixNano,
				s.EndTimeUnixNano, have["request"].StartTimeUnixNano, have["request"].EndTimeUnixNano)
		}
	}
	if len(have) != len(want) || len(got.got) != len(want) {
		t.Errorf("%d spans, %d of this trace, want %d: the request that was not to be traced has some", len(got.got),
			len(have), len(want))
	}
	request := have["request"]
	if hex.EncodeToString(request.ParentSpanId) != callerSpan || attribute(request, "sluice.app") != "scenes" ||
		attribute(request, "sluice.outcome") != "served" || attribute(request, "http.response.status_code") != "200" {
		t.Errorf("%v", request)
	}
	if v := attribute(have["request/stage read/batch/run"], "sluice.variant"); v != "read" {
		t.Errorf("the second run is of variant %q", v)
	}
	if got.keys[0] != "secret" {
		t.Errorf("deliveries have the header %q", got.keys)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+server.admin+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/openmetrics-text")
	resp, err := http.DefaultClient.Do(r)
	if _, text := readBody(t, resp, err); !strings.Contains(text, `# {trace_id="`+traceID+`"}`) {
		t.Errorf("no exemplar names the trace:\n%s", text)
	}
}

// TestTracesOfABatch has several traced queries share a batch, over gRPC, and looks for links between them.
func TestTracesOfABatch(t *testing.T) {
	got := &spans{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to := grpc.NewServer()
	collector.RegisterTraceServiceServer(to, got)
	go func() { _ = to.Serve(l) }()
	defer to.Stop()
	server := serve(t, "-f", write(t, t.TempDir(), "sluice.yaml", `
version: 1
device_types: [{name: any}]
workers: [{name: w, backend: {kind: fake, latency: 30ms}}]
apps:
  - name: echo
    slo: {latency: 2s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 2]}]
    variants: [{name: v, max_batch: 8}]
server: {not_ready: 0s, http: "off", grpc: "127.0.0.1:0", admin: "off", tracing: {endpoint: "grpc://%s", sample: 1}}
`, l.Addr()))
	c, err := grpc.NewClient(server.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	client := pb.NewGRPCInferenceServiceClient(c)
	ask := func() error {
		_, err := client.ModelInfer(t.Context(), oip.EncodeRequest("echo", "", "", []tensor.Tensor{
			{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)}}, nil))
		return err
	}
	until(t, func() bool { return ask() == nil })
	var all sync.WaitGroup
	for range 8 { // the first runs alone, the others wait for it together
		all.Go(func() {
			if err := ask(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	linked := func() bool {
		got.mu.Lock()
		defer got.mu.Unlock()
		requests := map[string]bool{}
		for _, s := range got.got {
			if s.Name == "request" {
				requests[string(s.SpanId)] = true
			}
		}
		for _, s := range got.got {
			if s.Name == "batch" && len(s.Links) > 0 && requests[string(s.Links[0].SpanId)] {
				return attribute(s, "sluice.queries") == fmt.Sprint(len(s.Links)+1)
			}
		}
		return false
	}
	until(t, linked)
}
