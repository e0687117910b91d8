package server_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/tensor"
)

// rowOf is a request with one FP32 row whose first byte is k.
func rowOf(k byte) *pb.ModelInferRequest {
	data := make([]byte, 8)
	data[0] = k
	return oip.EncodeRequest("digits/v1", "", strconv.Itoa(int(k)), []tensor.Tensor{
		{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: data},
	}, nil)
}

// Requests of a stream run side by side, and the later they come the sooner these are answered. The answers arrive in
// the order of the requests, an error in its place, each marked as the last of its request.
func TestAnswersOfAStreamComeInTheOrderOfRequests(t *testing.T) {
	s := start(t, server.Config{})
	const n, broken = 40, 7
	var done [n + 1]chan struct{}
	for k := range done {
		done[k] = make(chan struct{})
	}
	close(done[n])
	s.p.infer = func(_ context.Context, r *dataplane.Request) (*dataplane.Response, error) {
		k := int(r.Inputs[0].Data[0])
		next := k + 1
		if next == broken {
			next++
		}
		<-done[next] // the later one is answered first
		close(done[k])
		return &dataplane.Response{Outputs: []tensor.Tensor{r.Inputs[0]}}, nil
	}
	stream, err := s.client(t).ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for k := range n {
		r := rowOf(byte(k))
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
	for k := range n {
		a, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		got := a.GetInferResponse()
		if got.GetId() != strconv.Itoa(k) || (a.ErrorMessage != "") != (k == broken) ||
			!got.GetParameters()["triton_final_response"].GetBoolParam() {
			t.Fatalf("answer %d is %v", k, a)
		}
	}
}

// Answers that wait for earlier ones of their stream hold their part of the memory budget until they are sent.
func TestAnswersThatWaitOnAStreamHoldMemory(t *testing.T) {
	s := start(t, server.Config{Memory: 4 << 20})
	first := make(chan struct{})
	s.p.infer = func(_ context.Context, r *dataplane.Request) (*dataplane.Response, error) {
		if r.Inputs[0].Data[0] == 0 {
			<-first
		}
		return &dataplane.Response{Outputs: []tensor.Tensor{
			{Name: "y", DType: tensor.Uint8, Shape: []int64{1, 1 << 20}, Data: make([]byte, 1<<20)},
		}}, nil
	}
	stream, err := s.client(t).ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const n = 4
	for k := range n {
		if err := stream.Send(rowOf(byte(k))); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool { return s.Held() > 3<<20 })
	close(first)
	for range n {
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool { return s.Held() == 0 })
}

// Whatever form a request has, its answer is raw: existing clients read nothing else.
func TestAnswersToTypedContentsAreRaw(t *testing.T) {
	s := start(t, server.Config{})
	r := rowOf(1)
	r.RawInputContents = nil
	r.Inputs[0].Contents = &pb.InferTensorContents{Fp32Contents: []float32{1, 2}}
	got, err := s.client(t).ModelInfer(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.RawOutputContents) != 2 || len(got.RawOutputContents[0]) != 8 || got.Outputs[0].Contents != nil {
		t.Errorf("%v", got)
	}
}
