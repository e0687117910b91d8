package server_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/tensor"
)

// Sequences and requests for timings reach the service, and timings reach the client, over both protocols.
func TestSequencesAndTimings(t *testing.T) {
	s := start(t, server.Config{})
	s.p.infer = func(_ context.Context, r *dataplane.Request) (*dataplane.Response, error) {
		out := &dataplane.Response{
			Outputs: []tensor.Tensor{{Name: "y", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)}},
		}
		if r.Timings {
			out.Stages = []dataplane.StageTime{{
				Stage: "find", Variant: "small", Items: 1, Batch: 4, Queue: 3 * time.Millisecond,
				Run: 2 * time.Millisecond,
			},
				{
					Stage: "read", Variant: "large", Items: 17, Batch: 8, Ready: 5 * time.Millisecond,
					Queue: time.Millisecond, Run: 7 * time.Millisecond,
				}}
		}
		return out, nil
	}
	ask := func(parameters string) string {
		t.Helper()
		code, _, out := s.do(t, "POST", model+"/infer",
			strings.Replace(two, `"id"`, `"parameters":{`+parameters+`},"id"`, 1))
		if code != 200 {
			t.Errorf("%s: %d %s", parameters, code, out)
		}
		return out
	}
	out := ask(`"sequence_id":7,"sequence_start":true,"stage_timings":true`)
	for _, want := range []string{
		`"stage.find.variant":"small"`, `"stage.find.batch":4`, `"stage.find.queue_us":3000`, `"stage.read.items":17`,
		`"stage.read.ready_us":5000`, `"stage.read.run_us":7000`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%s lacks %s", out, want)
		}
	}
	if q := s.p.last; q.Stream != "7" || !q.Begins || q.Ends {
		t.Errorf("%+v", q)
	}
	if out := ask(`"sequence_id":"seven","sequence_end":true`); strings.Contains(out, "stage.") ||
		s.p.last.Stream != "seven" || !s.p.last.Ends {
		t.Errorf("%s, %+v", out, s.p.last)
	}
	inputs := []tensor.Tensor{{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)}}
	r, err := s.client(t).ModelInfer(t.Context(), oip.EncodeRequest("digits/v1", "", "", inputs,
		map[string]*pb.InferParameter{
			"sequence_id": oip.Int(7), "sequence_end": oip.Bool(true), "stage_timings": oip.Bool(true),
		}))
	if err != nil || r.Parameters["stage.read.run_us"].GetInt64Param() != 7000 ||
		r.Parameters["stage.find.variant"].GetStringParam() != "small" {
		t.Errorf("%v, %v", r, err)
	}
	if q := s.p.last; q.Stream != "7" || !q.Ends || len(q.Inputs) != 1 {
		t.Errorf("%+v", q)
	}
	meta, err := s.client(t).ServerMetadata(t.Context(), &pb.ServerMetadataRequest{})
	if err != nil || !slices.Contains(meta.Extensions, "sequence") ||
		!slices.Contains(meta.Extensions, "sequence(string_id)") {
		t.Errorf("%v, %v", meta, err)
	}
}

// Requests of a sequence on one gRPC stream are queued in the order in which they were sent, however long each answer
// takes. A wrong one does not delay those behind it.
func TestSequenceOnAStream(t *testing.T) {
	s := start(t, server.Config{})
	var order []byte
	release := make(chan struct{})
	const n, broken = 50, 20
	s.p.infer = func(_ context.Context, r *dataplane.Request) (*dataplane.Response, error) {
		order = append(order, r.Inputs[0].Data[0]) // unguarded: each is queued before the next is taken up
		if len(order) == n-1 {
			close(release) // the others are not answered before all are queued
		}
		r.Queued()
		<-release
		return &dataplane.Response{
			Outputs: []tensor.Tensor{{Name: "y", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)}},
		}, nil
	}
	stream, err := s.client(t).ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for k := range n {
		data := make([]byte, 8)
		data[0] = byte(k)
		r := oip.EncodeRequest("digits/v1", "", "", []tensor.Tensor{
			{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: data},
		}, map[string]*pb.InferParameter{"sequence_id": oip.Int(3)})
		if k == broken {
			r.ModelName = "nobody"
		}
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	wrong := -1
	for k := range n {
		a, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if a.ErrorMessage != "" {
			wrong = k
		}
	}
	if wrong != broken || len(order) != n-1 || !slices.IsSorted(order) {
		t.Errorf("answer %d is an error, queued in the order %v", wrong, order)
	}
}
