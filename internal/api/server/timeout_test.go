package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
)

// How long a client waits reaches the service with its query, whichever way it asks. What comes later is an error that
// says so.
func TestClientsDeadlines(t *testing.T) {
	s := start(t, server.Config{})
	const long = time.Hour
	within := func() time.Duration {
		s.p.mu.Lock()
		defer s.p.mu.Unlock()
		return s.p.last.Within
	}
	for path, body := range map[string]string{
		"/infer": two, "/versions/1/infer": two, "/generate": `{"x":[3,4]}`, "/generate_stream": `{"x":[3,4]}`,
	} {
		s.p.infer = nil
		if strings.Contains(path, "generate") {
			s.p.infer = counting
		}
		for value, want := range map[string]time.Duration{"": 0, "3600000000": long, "1h": long, "60m": long} {
			header := []string{oip.HeaderTimeout, value}
			if value == "" {
				header = nil
			}
			code, _, out := s.do(t, "POST", model+path, body, header...)
			if got := within(); code != http.StatusOK || got > want || got < want-want/2 {
				t.Errorf("%s with %q: %d %s, waits for %v", path, value, code, out, got)
			}
		}
		for _, value := range []string{"0", "-1", "0ms", "soon", "12 apples", "1e3"} {
			code, _, out := s.do(t, "POST", model+path, body, oip.HeaderTimeout, value)
			if code != http.StatusBadRequest || !strings.Contains(out, oip.HeaderTimeout+": is ") {
				t.Errorf("%s with %q: %d %s, want an error that names the header", path, value, code, out)
			}
		}
	}
	s.p.infer = func(ctx context.Context, _ *dataplane.Request) (*dataplane.Response, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if code, _, out := s.do(t, "POST", model+"/infer", two, oip.HeaderTimeout, "1ms"); code != 504 {
		t.Errorf("a deadline that passes: %d %s, want 504", code, out)
	}
}

// A deadline of gRPC is how long the client waits, for single calls and for all of a stream.
func TestDeadlinesOfGRPC(t *testing.T) {
	s := start(t, server.Config{})
	c := s.client(t)
	r := &pb.ModelInferRequest{ModelName: "digits/v1", Inputs: []*pb.ModelInferRequest_InferInputTensor{{
		Name: "x", Datatype: "FP32", Shape: []int64{1, 2},
		Contents: &pb.InferTensorContents{Fp32Contents: []float32{1, 2}},
	}}}
	for _, stream := range []bool{false, true} {
		for _, wait := range []time.Duration{0, time.Hour} {
			ctx, done := context.WithCancel(t.Context())
			if wait > 0 {
				ctx, done = context.WithTimeout(t.Context(), wait)
			}
			var err error
			if stream {
				var x pb.GRPCInferenceService_ModelStreamInferClient
				if x, err = c.ModelStreamInfer(ctx); err == nil {
					if err = x.Send(r); err == nil {
						_, err = x.Recv()
					}
				}
			} else {
				_, err = c.ModelInfer(ctx, r)
			}
			done()
			s.p.mu.Lock()
			got := s.p.last.Within
			s.p.mu.Unlock()
			if err != nil || got > wait || got < wait/2 {
				t.Errorf("stream %v: a client that waits for %v is known to wait for %v, %v", stream, wait, got, err)
			}
		}
	}
	s.p.infer = func(ctx context.Context, _ *dataplane.Request) (*dataplane.Response, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ctx, done := context.WithTimeout(t.Context(), time.Millisecond)
	defer done()
	if _, err := c.ModelInfer(ctx, r); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a deadline that passes: %v", err)
	}
}
