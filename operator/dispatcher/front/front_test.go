package front

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/operator/dispatcher/cells"
	"github.com/sluice-serving/sluice/operator/dispatcher/runner"
)

// config is a cell with one app on fake workers, which answer at once.
const config = `version: 1
device_types: [{name: d, price_per_hour: 1, cores: 2}]
workers: [{name: w, count: 4, backend: {kind: fake}}]
apps:
  - name: app
    slo: {latency: 1s}
    late: serve-late
    demand: 100
    inputs: [{name: x, datatype: FP32, shape: [-1, -1]}]
    variants: [{name: v, accuracy: 1, max_batch: 16}]
`

// startRuns serves the cell 0.
func startRuns(t testing.TB) *runner.Manager { return startRunsOf(t, config, nil) }

// startRunsOf serves a configuration as the cell 0.
func startRunsOf(t testing.TB, config string, certificate func(context.Context) *x509.Certificate) *runner.Manager {
	t.Helper()
	ready := make(chan struct{}, 8)
	m := runner.New(runner.Options{Log: slog.New(slog.DiscardHandler), Certificate: certificate, Changed: func(int) {
		select {
		case ready <- struct{}{}:
		default:
		}
	}})
	m.Configure(0, map[string]string{"sluice.yaml": config})
	m.Prepare(0)
	for !m.Prepared(0) {
		select {
		case <-ready:
		case <-time.After(time.Minute):
			t.Fatalf("the cell is not ready: %v", m.Failure(0))
		}
	}
	t.Cleanup(m.Close)
	return m
}

// startFront serves a front. me is its identity.
func startFront(t testing.TB, me string, runs Runs, hold time.Duration) *Front {
	t.Helper()
	return serveFront(t, Config{Table: NewTable(me), Runs: runs, Hold: hold})
}

// serveFront serves a front on addresses of this machine.
func serveFront(t testing.TB, c Config) *Front {
	t.Helper()
	c.Server.HTTP, c.Server.GRPC, c.Server.DrainTimeout, c.Waiting = "127.0.0.1:0", "127.0.0.1:0", time.Second, 100
	f, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return f
}

// held has a front believe that somebody holds the cell 0.
func (f *Front) held(by cells.Holder) {
	f.table.SetCells(map[int]Cell{0: {Apps: []string{"app"}, Weight: 1}})
	f.table.SetHolders(map[int]cells.Holder{0: by})
}

func (f *Front) holder(identity string) cells.Holder {
	h := cells.Holder{Identity: identity, HTTP: f.HTTPAddr(), GRPC: f.GRPCAddr()}
	if f.secure() {
		h.Key = f.c.Replica.Key()
	}
	return h
}

const question = `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`

func post(t testing.TB, f *Front, body string) (*http.Response, string) {
	t.Helper()
	return postTo(t, f, "/v2/models/app/infer", body)
}

func postTo(t testing.TB, f *Front, path, body string) (*http.Response, string) {
	t.Helper()
	a, err := http.Post("http://"+f.HTTPAddr()+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a, string(b)
}

func call(t testing.TB, f *Front) (*pb.ModelInferResponse, error) {
	t.Helper()
	c, err := grpc.NewClient("passthrough:///"+f.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return pb.NewGRPCInferenceServiceClient(c).ModelInfer(t.Context(), grpcQuestion())
}

func grpcQuestion() *pb.ModelInferRequest {
	return &pb.ModelInferRequest{ModelName: "app", Id: "7",
		Inputs:           []*pb.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "FP32", Shape: []int64{1, 2}}},
		RawInputContents: [][]byte{make([]byte, 8)}}
}

type noRuns struct{}

func (noRuns) Use(int) *runner.Run { return nil }

func TestWeightsSplitAnApp(t *testing.T) {
	h := cells.Holder{Identity: "h"}
	list := []place{{cell: 0, holder: h, weight: 3}, {cell: 1, holder: h, weight: 1}, {cell: 2, weight: 4}}
	counts := map[int]int{}
	const n = 100_000
	for range n {
		counts[pick(list).cell]++
	}
	if counts[2] > 0 {
		t.Errorf("%d queries go to a cell that nobody holds", counts[2])
	}
	if share := float64(counts[0]) / n; math.Abs(share-0.75) > 0.01 {
		t.Errorf("the heavier cell gets %v of the queries, want 0.75", share)
	}
}

// TestQueriesArePassedOn asks a front that serves nothing itself: the other one answers, over both protocols, also for
// bodies that are too large to be kept.
func TestQueriesArePassedOn(t *testing.T) {
	runs := startRuns(t)
	a, b := startFront(t, "a", runs, time.Second), startFront(t, "b", noRuns{}, time.Second)
	a.held(a.holder("a"))
	b.held(a.holder("a"))
	if r, body := post(t, b, question); r.StatusCode != http.StatusOK || !strings.Contains(body, `"model_name":"app"`) {
		t.Errorf("HTTP answers %d %s", r.StatusCode, body)
	}
	for _, x := range []*Front{a, b} {
		for _, path := range []string{"/v1/models/app:predict", "/v1/models/app/versions/v:predict"} {
			r, body := postTo(t, x, path, `{"inputs":[[1,2]]}`)
			if r.StatusCode != http.StatusOK || !strings.Contains(body, `{"outputs":`) {
				t.Errorf("%s answers %d %s", path, r.StatusCode, body)
			}
		}
	}
	columns := 200_000
	large := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,%d],"data":[%s1]}]}`, columns,
		strings.Repeat("1,", columns-1))
	if r, body := post(t, b, large); r.StatusCode != http.StatusOK || len(body) < columns {
		t.Errorf("HTTP answers a large body with %d %.200s", r.StatusCode, body)
	}
	if x, err := call(t, b); err != nil || x.Id != "7" || len(x.Parameters) == 0 {
		t.Errorf("gRPC answers %v, %v", x, err)
	}
	if r, body := post(t, b, `{"inputs":[]}`); r.StatusCode != http.StatusBadRequest {
		t.Errorf("the holder's own error comes as %d %s", r.StatusCode, body)
	}
}

// TestPassedOnOnce has two fronts believe that the other one holds the cell.
func TestPassedOnOnce(t *testing.T) {
	a, b := startFront(t, "a", noRuns{}, 2*time.Second), startFront(t, "b", noRuns{}, 2*time.Second)
	a.held(b.holder("b"))
	b.held(a.holder("a"))
	if r, body := post(t, b, question); r.StatusCode != http.StatusServiceUnavailable ||
		r.Header.Get("Retry-After") == "" {
		t.Errorf("HTTP answers %d %s", r.StatusCode, body)
	}
	if _, err := call(t, b); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "try again") {
		t.Errorf("gRPC answers %v", err)
	}
}

// TestUnreachableHolderIsWaitedFor has a cell move from a pod that cannot be reached to one that can.
func TestUnreachableHolderIsWaitedFor(t *testing.T) {
	runs := startRuns(t)
	a, b := startFront(t, "a", runs, time.Minute), startFront(t, "b", noRuns{}, time.Minute)
	a.held(a.holder("a"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	_ = l.Close()
	for _, ask := range []func() error{
		func() error {
			if r, body := post(t, b, question); r.StatusCode != http.StatusOK {
				return fmt.Errorf("HTTP answers %d %s", r.StatusCode, body)
			}
			return nil
		},
		func() error { _, err := call(t, b); return err },
	} {
		b.held(cells.Holder{Identity: "gone", HTTP: gone, GRPC: gone})
		answered := make(chan error, 1)
		go func() { answered <- ask() }()
		for b.waiting.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		b.held(a.holder("a"))
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
}

// TestLostAnswerIsNotAskedForAgain has a pod take a query and die: the client is told to try again, and the query is
// not sent a second time.
func TestLostAnswerIsNotAskedForAgain(t *testing.T) {
	var taken atomic.Int64
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 1<<16)
			if n, err := c.Read(b); err == nil && bytes.Contains(b[:n], []byte("POST")) {
				taken.Add(1)
			}
			_ = c.Close()
		}
	}()
	b := startFront(t, "b", noRuns{}, time.Second)
	b.held(cells.Holder{Identity: "dies", HTTP: l.Addr().String(), GRPC: l.Addr().String()})
	r, body := post(t, b, question)
	if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" ||
		!strings.Contains(body, "try again") {
		t.Errorf("HTTP answers %d %s", r.StatusCode, body)
	}
	if n := taken.Load(); n != 1 {
		t.Errorf("the query was sent %d times", n)
	}
}

// TestGRPCLostAnswer is the same over gRPC: the pod takes the call and its connections break.
func TestGRPCLostAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var taken atomic.Int64
	var dying *grpc.Server
	dying = grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{protoCodec()}), grpc.UnknownServiceHandler(
		func(_ any, s grpc.ServerStream) error {
			var in frame
			if err := s.RecvMsg(&in); err != nil {
				return err
			}
			taken.Add(1)
			go dying.Stop()
			<-s.Context().Done()
			return s.Context().Err()
		}))
	go func() { _ = dying.Serve(l) }()
	b := startFront(t, "b", noRuns{}, time.Second)
	b.held(cells.Holder{Identity: "dies", HTTP: l.Addr().String(), GRPC: l.Addr().String()})
	c, err := grpc.NewClient("passthrough:///"+b.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var trailer metadata.MD
	_, err = pb.NewGRPCInferenceServiceClient(c).ModelInfer(t.Context(), grpcQuestion(), grpc.Trailer(&trailer))
	if status.Code(err) != codes.Unavailable || len(trailer.Get("retry-after-ms")) == 0 {
		t.Errorf("gRPC answers %v with %v", err, trailer)
	}
	if n := taken.Load(); n != 1 {
		t.Errorf("the query was sent %d times", n)
	}
}

// TestWaitingIsBounded has more queries come than may wait for a cell.
func TestWaitingIsBounded(t *testing.T) {
	b := startFront(t, "b", noRuns{}, time.Minute)
	b.c.Waiting = 0
	b.held(cells.Holder{})
	if r, body := post(t, b, question); r.StatusCode != http.StatusServiceUnavailable ||
		!strings.Contains(body, "queries wait") {
		t.Errorf("HTTP answers %d %s", r.StatusCode, body)
	}
}

func FuzzTextField(f *testing.F) {
	f.Add([]byte{0x0a, 3, 'a', 'p', 'p'})
	f.Add([]byte{0x12, 1, 'x', 0x0a, 3, 'a', 'p', 'p'})
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		whole, _, _ := scanText(b, fieldModel)
		if len(whole) > len(b) {
			t.Errorf("%q is longer than the message", whole)
		}
	})
}
