package server_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
	triton "github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeService answers with a function.
type fakeService struct {
	mu       sync.Mutex
	ready    bool
	unloaded bool
	members  bool           // the latest unload was to unload those, too
	loading  server.Loading // of the latest load
	infer    func(context.Context, *dataplane.Request) (*dataplane.Response, error)
	last     *dataplane.Request
	model    server.Model
	moved    *server.Model // has the model's place; nil for none
}

func newFakeService() *fakeService {
	return &fakeService{ready: true, model: server.Model{
		Name: "digits/v1", Platform: "onnxruntime_onnx", Batched: true, MaxBatch: 4,
		Versions: []server.Version{
			{
				Variant: 0, Name: "small", Version: "1", Accuracy: 0.8,
			}, {Variant: 1, Name: "large", Version: "2", Accuracy: 0.9},
		},
		Inputs: []tensor.Spec{{Name: "x", DType: tensor.FP32, Shape: []int64{-1, 2}}},
		Length: &tensor.Length{Input: "x", Axes: []int{1}},
		Outputs: []tensor.Spec{
			{
				Name: "y", DType: tensor.FP32, Shape: []int64{-1, 2},
			}, {Name: "s", DType: tensor.Bytes, Shape: []int64{-1}},
		},
	}}
}

func (p *fakeService) Ready() bool     { p.mu.Lock(); defer p.mu.Unlock(); return p.ready }
func (p *fakeService) Unready() string { return "not ready" }
func (p *fakeService) Models() []*server.Model {
	return []*server.Model{&p.model}
}
func (p *fakeService) Lookup(name string) (*server.Model, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.moved != nil {
		return p.moved, name == p.moved.Name
	}
	return &p.model, name == p.model.Name
}
func (p *fakeService) ModelReady(*server.Model, string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready && !p.unloaded
}
func (p *fakeService) Reason(*server.Model, string) string { return "not loaded" }

func (p *fakeService) Load(_ context.Context, name string, how server.Loading) error {
	if _, ok := p.Lookup(name); !ok {
		return oip.Errorf(oip.NotFound, "", "there is no such model")
	}
	p.loading = how
	p.set(false)
	return nil
}
func (p *fakeService) Unload(_ context.Context, _ *server.Model, members bool) error {
	p.members = members
	p.set(true)
	return nil
}
func (p *fakeService) Unused() []string { return []string{"another"} }

func (p *fakeService) set(v bool) { p.mu.Lock(); p.unloaded = v; p.mu.Unlock() }
func (p *fakeService) Statistics(*server.Model) []server.VersionStatistics {
	return []server.VersionStatistics{
		{
			Version: "1", InferenceCount: 3, ExecutionCount: 2, Success: 3, SuccessNS: 30,
			Batches: []server.BatchStatistics{{Size: 2, Count: 1, NS: 7}},
		},
	}
}

func (p *fakeService) Chain(front server.Links) server.Infer {
	return server.Chain(p.answer, front.Tenant, front.Deadline, front.Trace)
}

func (p *fakeService) answer(ctx context.Context, r *dataplane.Request) (*dataplane.Response, error) {
	p.mu.Lock()
	p.last = r
	f := p.infer
	p.mu.Unlock()
	if f != nil {
		return f(ctx, r)
	}
	names := []byte{}
	for range r.Items {
		names = tensor.AppendBytes(names, []byte("é\x00"))
	}
	v := serving.VariantID(1)
	if r.Variant >= 0 {
		v = r.Variant
	}
	return &dataplane.Response{Query: 42, Variant: v, Accuracy: 0.9, Queue: 1500 * time.Microsecond, BatchSize: 3,
		Outputs: []tensor.Tensor{
			{Name: "y", DType: tensor.FP32, Shape: r.Inputs[0].Shape, Data: r.Inputs[0].Data}, {
				Name: "s", DType: tensor.Bytes, Shape: []int64{int64(r.Items)}, Data: names,
			}}}, nil
}

type running struct {
	*server.Server
	p    *fakeService
	stop func() error
}

func start(t *testing.T, c server.Config) *running {
	t.Helper()
	p := newFakeService()
	c.HTTP, c.GRPC, c.Admin = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	s, err := server.New(c, p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	var once sync.Once
	var result error
	stop := func() error {
		once.Do(func() { cancel(); result = <-ended })
		return result
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return &running{s, p, stop}
}

func (r *running) do(t *testing.T, method, path, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+r.HTTPAddr()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k := 0; k < len(header); k += 2 {
		req.Header.Set(header[k], header[k+1])
	}
	resp, err := (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func (r *running) client(t *testing.T) pb.GRPCInferenceServiceClient {
	return pb.NewGRPCInferenceServiceClient(r.conn(t))
}

func (r *running) conn(t *testing.T) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(r.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

const (
	model = "/v2/models/digits%2Fv1"
	two   = `{"id":"a","inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`
)

func TestHTTPPaths(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") })
	s := start(t, server.Config{
		ModelControl: true, PublicMetrics: true, AdminHandlers: map[string]http.Handler{server.MetricsPath: metrics},
	})
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/v2/health/live", "", 200, `{"live":true}`},
		{"GET", "/v2/health/ready?test_1=1&test_2=2", "", 200, `{"ready":true}`},
		{"GET", "/v2", "", 200, `"name":"sluice"`},
		{"GET", model, "", 200, `"versions":["1","2"]`},
		{"GET", model + "/versions/2", "", 200, `"datatype":"FP32"`},
		{"GET", model + "/versions/large", "", 200, `"name":"digits/v1"`},
		{"GET", model + "/versions/9", "", 404, `use 1 (small), 2 (large)`},
		{"GET", model + "/ready", "", 200, `true`},
		{"GET", model + "/versions/1/ready", "", 200, `true`},
		{"GET", model + "/config", "", 200, `"max_batch_size":4`},
		{"GET", model + "/stats", "", 200, `"inference_count":3`},
		{"GET", "/v2/models/stats", "", 200, `"execution_count":2`},
		{"POST", model + "/infer?x=1", two, 200, `"data":[1,2]`},
		{"POST", model + "/versions/1/infer", two, 200, `"variant":"small"`},
		{"POST", "/v2/repository/index", `{"ready":true}`, 200, `[{"name":"digits/v1","version":"1","state":"READY"}`},
		{
			"POST", "/v2/repository/index", "\ufeff" + `{"ready":true}`, 200,
			`[{"name":"digits/v1","version":"1","state":"READY"}`,
		},
		{"POST", "/v2/repository/index", ``, 200, `{"name":"another"}]`},
		{"POST", "/v2/repository/models/digits%2Fv1/unload", `{}`, 200, `{}`},
		{"GET", model + "/ready", "", 503, `false`},
		{"POST", "/v2/repository/models/digits%2Fv1/load", `{}`, 200, `{}`},
		{
			"POST", "/v2/repository/models/digits%2Fv1/load",
			`{"parameters":{"config":"{\"max_batch_size\":16}","file:1/model.onnx":"YQ=="}}`, 200, `{}`,
		},
		{
			"POST", "/v2/repository/models/digits%2Fv1/load", `{"parameters":{"file:1/model.onnx":"Y"}}`, 400,
			`is no base64`,
		},
		{"POST", "/v2/repository/models/digits%2Fv1/load", `{"parameters":{"config":5}}`, 400, `is no text`},
		{
			"POST", "/v2/repository/models/digits%2Fv1/unload", `{"parameters":{"unload_dependents":7}}`, 400,
			`neither true nor false`,
		},
		{"POST", "/v2/repository/models/none/load", `{}`, 404, `failed to load 'none'`},
		{"POST", "/v2/repository/models/none/load", `{}`, 404, `failed to load 'none'`},
		{"GET", "/metrics", "", 200, `metrics`},
		{"GET", "/v2/models/none", "", 404, `{"error":"Request for unknown model: 'none' is not found"}`},
		{"GET", model + "/infer", "", 405, `use POST`},
		{"POST", "/v2/health/live", "", 405, `use GET`},
		{"GET", "/v3/models", "", 404, `there is nothing at`},
		{"GET", "/v2/", "", 200, `"name":"sluice"`},
		{"POST", "/v2/systemsharedmemory/region/x/register", "{}", 501, `server.shared_memory`},
		{"POST", "/v2/cudasharedmemory/region/x/register", "{}", 501, `CUDA shared memory is not supported`},
		{"GET", "/v2/cudasharedmemory/status", "", 200, `[]`},
		{"GET", "/v2/trace/setting", "", 200, `"trace_level":["OFF"]`},
		{"GET", model + "/trace/setting", "", 200, `"trace_level":["OFF"]`},
		{"POST", model + "/trace/setting", `{"trace_rate":"5"}`, 200, `"trace_rate":"5"`},
		{"GET", "/v2/trace/setting", "", 200, `"trace_rate":"1000"`},
		{"POST", model + "/trace/setting", `{"trace_rate":null}`, 200, `"trace_rate":"1000"`},
		{"POST", "/v2/trace/setting", `{"trace_level":["TIMESTAMPS"]}`, 501, `trace_level`},
		{"POST", "/v2/trace/setting", `{"trace_file":"/etc/x"}`, 400, `can not be updated`},
		{"GET", "/v2/models/none/trace/setting", "", 404, `Request for unknown model`},
		{"POST", "/v2/logging", `{"log_verbose_level":1}`, 200, `"log_verbose_level":1`},
		{"POST", "/v2/logging", `{"log_verbose_level":-1}`, 400, `at least 0`},
		{"POST", "/v2/logging", `{"log_file":"x"}`, 400, `can not be updated`},
		{"GET", "/v2/logging", "", 200, `"log_info":true`},
		{"POST", model + "/infer", `{"instances":[[1,2]]}`, 400, `protocol v1`},
		{"POST", model + "/infer", `{"inputs":5}`, 400, `inputs must not be a JSON number`},
		{"POST", model + "/infer", `{`, 400, `error`},
		{
			"POST", model + "/infer", strings.Replace(two, "FP32", "INT32", 1), 400,
			`datatype is INT32, model \"digits/v1\" takes FP32`,
		},
		{"POST", model + "/infer", strings.Replace(two, `[1,2],"data"`, `[2,1],"data"`, 1), 400, `takes [-1,2]`},
		{"POST", model + "/infer", strings.Replace(two, `"x"`, `"z"`, 1), 400, `is no input of model`},
		{
			"POST", model + "/infer",
			`{"inputs":[{"name":"x","datatype":"FP32","shape":[5,2],"data":[1,2,3,4,5,6,7,8,9,10]}]}`, 400, `at most 4`,
		},
		{
			"POST", model + "/infer", `{"inputs":[{"name":"x","datatype":"FP32","shape":[0,2],"data":[]}]}`, 400,
			`no items`,
		},
		{
			"POST", model + "/infer", strings.Replace(two, `"id"`, `"outputs":[{"name":"q"}],"id"`, 1), 400,
			`unexpected inference output 'q' for model 'digits/v1'`,
		},
		{
			"POST", model + "/infer", strings.Replace(two, `"id"`, `"outputs":[{"name":"s"}],"id"`, 1), 200,
			`"data":["é\u0000"]`,
		},
		{
			"POST", model + "/infer", strings.Replace(two, `"id"`, `"parameters":{"min_accuracy":2},"id"`, 1), 400,
			`parameters.min_accuracy`,
		},
	} {
		code, h, body := s.do(t, c.method, c.path, c.body)
		if code != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s, want %d and %q", c.method, c.path, code, body, c.status, c.want)
		}
		if code >= 400 {
			var e struct{ Error *string }
			if json.Unmarshal([]byte(body), &e) != nil || e.Error == nil || *e.Error == "" ||
				h.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s: the error is not {\"error\": string}: %s", c.method, c.path, body)
			}
		}
	}
}

func TestInferCarriesEverything(t *testing.T) {
	s := start(t, server.Config{})
	body := strings.Replace(two, `"id"`,
		`"parameters":{"timeout":250000,"priority":3,"min_accuracy":0.85,"sequence_id":1},"id"`, 1)
	code, _, out := s.do(t, "POST", model+"/versions/large/infer", body)
	for _, want := range []string{
		`"model_version":"2"`, `"id":"a"`, `"variant":"large"`, `"accuracy":0.9`, `"queue_us":1500`, `"batch_size":3`,
		`"query_id":42`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%d: %s lacks %s", code, out, want)
		}
	}
	q := s.p.last
	if q.Timeout != 250*time.Millisecond || q.Priority != 3 || q.MinAccuracy != 0.85 || q.Variant != 1 ||
		q.Items != 1 || q.Length != 2 {
		t.Errorf("the query: %+v", q)
	}
	r, err := s.client(t).ModelInfer(t.Context(), oip.EncodeRequest("digits/v1", "1", "b", []tensor.Tensor{
		{Name: "x", DType: tensor.FP32, Shape: []int64{2, 2}, Data: make([]byte, 16)},
	},
		map[string]*pb.InferParameter{"timeout": oip.Int(1000), "priority": oip.Int(1)}))
	if err != nil {
		t.Fatal(err)
	}
	if r.Id != "b" || r.ModelVersion != "1" || r.Parameters["variant"].GetStringParam() != "small" ||
		r.Parameters["queue_us"].GetInt64Param() != 1500 || len(r.RawOutputContents) != 2 {
		t.Errorf("the answer: %v", r)
	}
	if q := s.p.last; q.Timeout != time.Millisecond || q.Items != 2 || q.Variant != 0 || q.Priority != 1 ||
		q.Length != 2 {
		t.Errorf("the query: %+v", q)
	}
}

// The bodies that the Python client of Triton sends: binary input, no outputs named, binary_data_output true.
func TestBinaryExtension(t *testing.T) {
	s := start(t, server.Config{})
	head := `{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","parameters":{"binary_data_size":8}}],` +
		`"parameters":{"binary_data_output":true}}`
	code, h, body := s.do(t, "POST", model+"/infer", head+"\x00\x00\x80?\x00\x00\x00@",
		"Inference-Header-Content-Length", strconv.Itoa(len(head)))
	n, err := strconv.Atoi(h.Get("Inference-Header-Content-Length"))
	if code != 200 || err != nil || n > len(body) || !strings.HasPrefix(body[n:], "\x00\x00\x80?\x00\x00\x00@") {
		t.Fatalf("%d %v %v %q", code, h, err, body)
	}
	for _, bad := range []string{"-1", "x", "99999"} {
		if code, _, body := s.do(t, "POST", model+"/infer", head, "Inference-Header-Content-Length", bad); code !=
			400 || !strings.Contains(body, "Inference-Header-Content-Length") {
			t.Errorf("header %q: %d %s", bad, code, body)
		}
	}
	if code, _, body := s.do(t, "POST", model+"/infer", "\x00\x00\x80?\x00\x00\x00@", "Inference-Header-Content-Length",
		"0"); code != 200 {
		t.Errorf("raw request: %d %s", code, body)
	}
}

func TestCompression(t *testing.T) {
	s := start(t, server.Config{MaxRequest: 1 << 16})
	pack := func(w func(io.Writer) io.WriteCloser, text string) string {
		var b bytes.Buffer
		z := w(&b)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		return b.String()
	}
	zip := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	deflate := func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
	if code, _, body := s.do(t, "POST", model+"/infer", pack(zip, two), "Content-Encoding", "gzip"); code != 200 {
		t.Errorf("gzip: %d %s", code, body)
	}
	if code, _, body := s.do(t, "POST", model+"/infer", pack(deflate, two), "Content-Encoding", "deflate"); code !=
		200 {
		t.Errorf("deflate: %d %s", code, body)
	}
	if code, _, _ := s.do(t, "POST", model+"/infer", two, "Content-Encoding", "br"); code != 501 {
		t.Errorf("unknown encoding: %d", code)
	}
	if code, _, _ := s.do(t, "POST", model+"/infer", "not gzip", "Content-Encoding", "gzip"); code != 400 {
		t.Errorf("broken gzip: %d", code)
	}
	bomb := pack(zip, strings.Repeat(" ", 1<<24))
	if code, _, body := s.do(t, "POST", model+"/infer", bomb, "Content-Encoding", "gzip"); code != 413 ||
		!strings.Contains(body, "65536") {
		t.Errorf("bomb of %d bytes: %d %s", len(bomb), code, body)
	}
	if code, _, body := s.do(t, "POST", model+"/infer", strings.Repeat(" ", 1<<17)); code != 413 ||
		!strings.Contains(body, "65536") {
		t.Errorf("large body: %d %s", code, body)
	}
	code, h, body := s.do(t, "POST", model+"/infer", two, "Accept-Encoding", "gzip")
	z, err := gzip.NewReader(strings.NewReader(body))
	if err != nil || h.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%d %v %v", code, h, err)
	}
	if plain, _ := io.ReadAll(z); !strings.Contains(string(plain), `"data":[1,2]`) {
		t.Errorf("unpacked: %s", plain)
	}
	for _, accept := range []string{"", "gzip;q=0", "gzip; q=0.000, deflate;q=0", "br", "*"} {
		if _, h, body := s.do(t, "POST", model+"/infer", two, "Accept-Encoding", accept); body[0] != '{' ||
			h.Get("Content-Encoding") != "" {
			t.Errorf("Accept-Encoding %q: %v", accept, h)
		}
	}
	for accept, want := range map[string]string{
		"gzip, deflate": "gzip", "gzip;q=0, deflate": "deflate", "gzip;q=0.2,deflate;q=0.3": "deflate", "GZIP": "gzip",
	} {
		if _, h, _ := s.do(t, "POST", model+"/infer", two, "Accept-Encoding", accept); h.Get("Content-Encoding") !=
			want {
			t.Errorf("Accept-Encoding %q: %v", accept, h)
		}
	}
}

// Existing clients send Accept-Encoding with every call, but decode the answers of inference alone.
func TestOnlyAnswersOfInferenceAreCompressed(t *testing.T) {
	s := start(t, server.Config{})
	for _, x := range []struct{ method, path, body string }{
		{"GET", "/v2", ""}, {"GET", model, ""}, {"GET", model + "/config", ""}, {"GET", model + "/stats", ""},
		{"POST", "/v2/repository/index", ""}, {"GET", "/v2/nothing", ""}, {"POST", model + "/infer", "{}"},
	} {
		_, h, body := s.do(t, x.method, x.path, x.body, "Accept-Encoding", "gzip, deflate")
		if h.Get("Content-Encoding") != "" || !json.Valid([]byte(body)) {
			t.Errorf("%s %s: %v %q", x.method, x.path, h, body)
		}
	}
}

func TestOutcomes(t *testing.T) {
	s := start(t, server.Config{})
	c := s.client(t)
	for _, x := range []struct {
		e    dataplane.Error
		http int
		grpc codes.Code
	}{
		{
			dataplane.Error{
				Outcome: serving.Refused, Reason: "full", RetryAfter: 1500 * time.Millisecond,
			}, 503, codes.Unavailable,
		},
		{dataplane.Error{Outcome: serving.Refused, Reason: "never"}, 400, codes.InvalidArgument},
		{dataplane.Error{Outcome: serving.Dropped, Reason: "late"}, 504, codes.DeadlineExceeded},
		{dataplane.Error{Outcome: serving.Failed, Reason: "broken"}, 500, codes.Internal},
		{dataplane.Error{Outcome: serving.Cancelled, Reason: "gone"}, 400, codes.Canceled},
		{
			dataplane.Error{
				Outcome: serving.Cancelled, Reason: "out of time", Cause: context.DeadlineExceeded,
			}, 504, codes.DeadlineExceeded,
		},
	} {
		s.p.mu.Lock()
		s.p.infer = func(context.Context, *dataplane.Request) (*dataplane.Response, error) { return nil, &x.e }
		s.p.mu.Unlock()
		code, h, body := s.do(t, "POST", model+"/infer", two)
		if code != x.http || !strings.Contains(body, x.e.Reason) {
			t.Errorf("%v: %d %s, want %d", x.e.Outcome, code, body, x.http)
		}
		if x.e.RetryAfter > 0 && h.Get("Retry-After") != "2" {
			t.Errorf("Retry-After is %q, want 2 (seconds, rounded up)", h.Get("Retry-After"))
		}
		var trailer metadata.MD
		_, err := c.ModelInfer(t.Context(), oip.EncodeRequest("digits/v1", "", "", []tensor.Tensor{
			{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)},
		}, nil), grpc.Trailer(&trailer))
		if status.Code(err) != x.grpc {
			t.Errorf("%v: %v, want %v", x.e.Outcome, err, x.grpc)
		}
		if x.e.RetryAfter > 0 && len(trailer.Get("retry-after-ms")) == 0 {
			t.Error("no retry-after-ms in the trailer")
		}
	}
}

func TestGRPCCalls(t *testing.T) {
	s := start(t, server.Config{ModelControl: true})
	c, ctx := s.client(t), t.Context()
	if r, err := c.ServerReady(ctx, &pb.ServerReadyRequest{}); err != nil || !r.Ready {
		t.Error(r, err)
	}
	if r, err := c.ModelReady(ctx, &pb.ModelReadyRequest{Name: "none"}); err != nil || r.Ready {
		t.Errorf("17: an unknown model is not ready, which is no error: %v, %v", r, err)
	}
	if _, err := c.ModelMetadata(ctx, &pb.ModelMetadataRequest{Name: "none"}); status.Code(err) != codes.NotFound {
		t.Errorf("17: metadata of an unknown model: %v", err)
	}
	if r, err := c.ModelMetadata(ctx, &pb.ModelMetadataRequest{Name: "digits/v1"}); err != nil ||
		r.Inputs[0].Datatype != "FP32" || len(r.Versions) != 2 {
		t.Error(r, err)
	}
	if r, err := c.ModelConfig(ctx, &pb.ModelConfigRequest{Name: "digits/v1"}); err != nil ||
		r.Config.GetMaxBatchSize() != 4 || r.Config.Output[1].DataType != triton.DataType_TYPE_STRING {
		t.Error(r, err)
	}
	if r, err := c.ModelStatistics(ctx, &pb.ModelStatisticsRequest{}); err != nil ||
		r.ModelStats[0].InferenceCount != 3 || r.ModelStats[0].BatchStats[0].BatchSize != 2 {
		t.Error(r, err)
	}
	if _, err := c.RepositoryModelUnload(ctx, &pb.RepositoryModelUnloadRequest{ModelName: "digits/v1"}); err != nil {
		t.Error(err)
	}
	if r, err := c.RepositoryIndex(ctx, &pb.RepositoryIndexRequest{}); err != nil ||
		r.Models[0].State != "UNAVAILABLE" {
		t.Error(r, err)
	}
	stream, err := c.ModelStreamInfer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	good := oip.EncodeRequest("digits/v1", "", "g", []tensor.Tensor{
		{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)},
	}, nil)
	for _, r := range []*pb.ModelInferRequest{good, {ModelName: "none", Id: "n"}} {
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		seen[r.InferResponse.GetId()] = r.ErrorMessage
	}
	if seen["g"] != "" || !strings.Contains(seen["n"], "unknown") || len(seen) != 2 {
		t.Errorf("19: errors travel inside the stream: %v", seen)
	}
}

// A panic behind the front end fails its own call only, over both protocols.
func TestPanicsAreContained(t *testing.T) {
	s := start(t, server.Config{})
	s.p.infer = func(context.Context, *dataplane.Request) (*dataplane.Response, error) { panic("on purpose") }
	r := oip.EncodeRequest("digits/v1", "", "", []tensor.Tensor{
		{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)},
	}, nil)
	if _, err := s.client(t).ModelInfer(t.Context(), r); status.Code(err) != codes.Internal {
		t.Error(err)
	}
	stream, err := s.client(t).ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(r)
	if a, err := stream.Recv(); err != nil || a.ErrorMessage == "" {
		t.Error(a, err)
	}
	_ = stream.CloseSend()
	_, _ = stream.Recv()
	if resp, err := http.Post("http://"+s.HTTPAddr()+model+"/infer", "", strings.NewReader(two)); err == nil {
		resp.Body.Close()
	}
	if code, _, _ := s.do(t, "GET", "/v2/health/live", ""); code != 200 {
		t.Errorf("after the panics: %d", code)
	}
}

// When a client goes away, its query's context ends.
func TestCancellation(t *testing.T) {
	s := start(t, server.Config{})
	gone := make(chan struct{}, 2)
	s.p.infer = func(ctx context.Context, _ *dataplane.Request) (*dataplane.Response, error) {
		<-ctx.Done()
		gone <- struct{}{}
		return nil, &dataplane.Error{Outcome: serving.Cancelled, Reason: "gone", Cause: ctx.Err()}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.client(t).ModelInfer(ctx, oip.EncodeRequest("digits/v1", "", "", []tensor.Tensor{
		{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)},
	}, nil))
	if status.Code(err) != codes.DeadlineExceeded {
		t.Error(err)
	}
	<-gone
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+s.HTTPAddr()+model+"/infer", strings.NewReader(two))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Error("answered")
	}
	<-gone
}

// After a signal the server reports not ready, answers what it accepted, and ends. No accepted query is lost.
func TestDrain(t *testing.T) {
	s := start(t, server.Config{NotReady: 300 * time.Millisecond})
	release := make(chan struct{})
	entered := make(chan struct{}, 2)
	s.p.infer = func(context.Context, *dataplane.Request) (*dataplane.Response, error) {
		entered <- struct{}{}
		<-release
		return &dataplane.Response{}, nil
	}
	health := healthpb.NewHealthClient(s.conn(t))
	waitFor(t, func() bool {
		r, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{})
		return err == nil && r.Status == healthpb.HealthCheckResponse_SERVING
	})
	answers := make(chan error, 2)
	go func() {
		_, err := s.client(t).ModelInfer(context.Background(), oip.EncodeRequest("digits/v1", "", "", []tensor.Tensor{
			{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)},
		}, nil))
		answers <- err
	}()
	go func() {
		resp, err := http.Post("http://"+s.HTTPAddr()+model+"/infer", "application/json", strings.NewReader(two))
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode != 200 {
				err = fmt.Errorf("status %d", resp.StatusCode)
			}
		}
		answers <- err
	}()
	<-entered
	<-entered
	ended := make(chan error, 1)
	go func() { ended <- s.stop() }()
	waitFor(t, func() bool { return !s.Ready() })
	if code, _, _ := s.do(t, "GET", "/v2/health/ready", ""); code != 503 {
		t.Errorf("while it drains it says %d", code)
	}
	if r, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil ||
		r.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("while it drains grpc.health says %v, %v", r, err)
	}
	waitFor(t, func() bool {
		c, err := net.Dial("tcp", s.HTTPAddr())
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	select {
	case err := <-ended:
		t.Fatalf("it ended with accepted queries unanswered: %v", err)
	default:
	}
	close(release)
	for range 2 {
		if err := <-answers; err != nil {
			t.Error("an accepted query was lost:", err)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// While it says that it is not ready the server answers, new connections as well, until it is hurried.
func TestNotReadyServersAnswerUntilHurried(t *testing.T) {
	hurry := make(chan struct{})
	s := start(t, server.Config{NotReady: time.Hour, Hurry: hurry})
	ended := make(chan error, 1)
	go func() { ended <- s.stop() }()
	waitFor(t, func() bool { return !s.Ready() })
	if code, _, _ := s.do(t, "GET", "/v2/health/ready", ""); code != 503 {
		t.Errorf("readiness says %d", code)
	}
	if code, _, body := s.do(t, "POST", model+"/infer", two); code != 200 {
		t.Errorf("a query: %d %s", code, body)
	}
	if _, err := s.client(t).ModelInfer(t.Context(), oip.EncodeRequest("digits/v1", "", "", []tensor.Tensor{
		{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)},
	}, nil)); err != nil {
		t.Errorf("a query over gRPC: %v", err)
	}
	close(hurry)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func waitFor(t *testing.T, f func() bool) {
	t.Helper()
	for range 1000 {
		if f() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it did not come to pass in 10 s")
}

// Slow clients are disconnected and large headers refused; the server keeps running.
func TestHostileClients(t *testing.T) {
	s := start(t, server.Config{ReadTimeout: 200 * time.Millisecond, MaxHeader: 8192})
	for _, what := range []string{
		"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nX: ",
		"POST " + model + "/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
	} {
		c, err := net.Dial("tcp", s.HTTPAddr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(what)); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		var slow net.Error
		if _, err := io.ReadAll(c); errors.As(err, &slow) && slow.Timeout() {
			t.Errorf("a client that sends nothing more was kept: %v", err)
		}
		c.Close()
	}
	c, err := net.Dial("tcp", s.HTTPAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	long := strings.Repeat("x", 1<<16)
	_, _ = c.Write([]byte("GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nX: " + long + "\r\n\r\n"))
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	answer, _ := io.ReadAll(c) // a reset may overtake the answer
	if len(answer) > 0 && !bytes.Contains(answer, []byte(" 431 ")) {
		t.Errorf("a header of 64 KiB: %q", answer)
	}
	if code, _, _ := s.do(t, "GET", "/v2/health/live", ""); code != 200 {
		t.Errorf("after all that: %d", code)
	}
}

func TestConfig(t *testing.T) {
	if _, err := server.New(server.Config{Admin: "0.0.0.0:0"}, newFakeService()); err == nil ||
		!strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("an admin address that others can reach: %v", err)
	}
	if _, err := server.New(server.Config{HTTP: "nonsense"}, newFakeService()); err == nil {
		t.Error("a bad address was taken")
	}
}

// A client that sends all of a body that is too large before it reads finds the answer: what is wrong, and the setting
// that bounds requests. It sends a length, or not.
func TestTooLargeBodiesAreAnswered(t *testing.T) {
	const limit = 8 << 20
	s := start(t, server.Config{MaxRequest: limit})
	for _, head := range []string{
		"Content-Length: " + strconv.Itoa(3*limit) + "\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n1800000\r\n",
	} {
		c, err := net.Dial("tcp", s.HTTPAddr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.(*net.TCPConn).SetReadBuffer(1 << 12); err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(c, "POST "+model+"/infer HTTP/1.1\r\nHost: localhost\r\n"+head+
			strings.Repeat(" ", 3*limit)+"\r\n0\r\n\r\n")
		if err != nil {
			t.Errorf("%q: the connection is closed while the client sends: %v", head, err)
		}
		got, _ := io.ReadAll(c)
		if !strings.HasPrefix(string(got), "HTTP/1.1 413") || !strings.Contains(string(got), "server.limits.request") {
			t.Errorf("%q: %s", head, got)
		}
	}
}

// Pages of the configured origins may call, and ask first; others are not told that they may.
func TestOrigins(t *testing.T) {
	s := start(t, server.Config{Origins: []string{"https://example.org"}})
	code, h, _ := s.do(t, "OPTIONS", model+"/infer", "", "Origin", "https://example.org",
		"Access-Control-Request-Method", "POST")
	if code != 204 || h.Get("Access-Control-Allow-Origin") != "https://example.org" ||
		!strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") {
		t.Error(code, h)
	}
	for origin, want := range map[string]int{"https://example.org": 200, "https://evil.org": 403} {
		code, h, _ := s.do(t, "POST", model+"/infer", two, "Origin", origin, "Content-Type", "text/plain")
		if told := h.Get("Access-Control-Allow-Origin"); code != want || (told == origin) != (want == 200) {
			t.Errorf("%s: %d %v", origin, code, h)
		}
	}
	if _, h, _ := start(t, server.Config{}).do(t, "GET", "/v2", "", "Origin", "https://example.org"); h.Get(
		"Access-Control-Allow-Origin") != "" {
		t.Error(h)
	}
}
