package server

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/serving"
)

// slow is a configuration of two apps whose one machine takes 200 ms for a query. One app serves late queries.
const slow = `
version: 1
device_types: [{name: d}]
workers: [{name: w, backend: {kind: fake, latency: 200ms}}]
apps:
  - {name: strict, slo: {latency: 10s}, inputs: [{name: x, datatype: FP32, shape: [-1, 1]}],
     variants: [{name: a, max_batch: 1}]}
  - {name: late, slo: {latency: 10s}, late: serve-late, inputs: [{name: x, datatype: FP32, shape: [-1, 1]}],
     variants: [{name: b, max_batch: 1}]}
server: {http: "127.0.0.1:0", grpc: "127.0.0.1:0", admin: "127.0.0.1:0", not_ready: 0s}
`

// A query that its client no longer waits for never runs, over HTTP and gRPC, whether late queries are served or not.
// Where it cannot be in time it is refused at once.
func TestClientsDeadlinesHold(t *testing.T) {
	var started atomic.Int32
	s := running(t, slow, Options{Observe: func(_ serving.Time, _ []engine.Input, out []engine.Decision) {
		for k := range out {
			started.Add(int32(len(out[k].Tasks)))
		}
	}})
	conn, err := grpc.NewClient(s.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	overGRPC := func(app string, within time.Duration) codes.Code {
		ctx, done := context.WithTimeout(t.Context(), within)
		defer done()
		_, err := pb.NewGRPCInferenceServiceClient(conn).ModelInfer(ctx, &pb.ModelInferRequest{
			ModelName: app, Inputs: []*pb.ModelInferRequest_InferInputTensor{{
				Name: "x", Datatype: "FP32", Shape: []int64{1, 1},
				Contents: &pb.InferTensorContents{Fp32Contents: []float32{1}},
			}},
		})
		return status.Code(err)
	}
	overHTTP := func(app string, header ...string) (int, string) {
		return ask(t, http.MethodPost, s.HTTPAddr()+"/v2/models/"+app+"/infer",
			`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,1],"data":[1]}]}`, header...)
	}
	for _, app := range []string{"strict", "late"} {
		before := started.Load()
		first := make(chan int, 1)
		go func() { code, _ := overHTTP("late"); first <- code }()
		if err := waitFor(t.Context(), func() bool { return started.Load() > before }); err != nil {
			t.Fatal(err)
		}
		// The machine is busy for longer than these clients wait.
		if code, text := overHTTP(app, oip.HeaderTimeout, "20ms"); code != http.StatusGatewayTimeout {
			t.Errorf("%s over HTTP: %d %s, want 504", app, code, text)
		}
		if code := overGRPC(app, 20*time.Millisecond); code != codes.DeadlineExceeded {
			t.Errorf("%s over gRPC: %v, want DeadlineExceeded", app, code)
		}
		if code := <-first; code != http.StatusOK {
			t.Errorf("the query before them: %d", code)
		}
		if code, text := overHTTP(app, oip.HeaderTimeout, "1m"); code != http.StatusOK {
			t.Errorf("%s with a client that waits: %d %s", app, code, text)
		}
		if code := overGRPC(app, time.Minute); code != codes.OK {
			t.Errorf("%s with a client that waits: %v", app, code)
		}
		if n := started.Load() - before; n != 3 {
			t.Errorf("%s: %d queries began, want the 3 whose clients wait", app, n)
		}
	}
	before := started.Load()
	code, text := overHTTP("strict", oip.HeaderTimeout, "20000")
	if code != http.StatusGatewayTimeout || !strings.Contains(text, "on arrival") || started.Load() != before {
		t.Errorf("on an idle machine that takes longer: %d %s, want 504 at once", code, text)
	}
}
