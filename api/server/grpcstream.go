package server

import (
	"errors"
	"io"
	"sync"

	"github.com/sluice-serving/sluice/api/oip"
	"github.com/sluice-serving/sluice/api/oip/pb"
)

// streamDepth is how many requests of one stream run at once. Further requests wait.
const streamDepth = 64

// finalResponse is the response parameter that marks the last answer of a request on a stream.
const finalResponse = "triton_final_response"

// streamAnswer becomes the answer of a request of a stream. It has capacity 1, so that the request's goroutine never
// waits for the client.
type streamAnswer chan heldAnswer

// heldAnswer is an answer with its claim of memory, which lasts until it is sent: answers wait for earlier ones.
type heldAnswer struct {
	*pb.ModelStreamInferResponse
	holds *claim
}

// ModelStreamInfer implements the protocol. Requests run side by side. Answers come in the order of their requests:
// clients of models with one answer a request match them by position. Errors are answers on the stream. Requests of
// sequences are queued in the order in which they arrive, others as they are decoded.
func (g *grpcService) ModelStreamInfer(stream pb.GRPCInferenceService_ModelStreamInferServer) error {
	inOrder := make(chan streamAnswer, streamDepth-1) // one more is held by the sender
	sent := make(chan error, 1)
	go func() {
		var err error
		for a := range inOrder {
			out := <-a
			if err == nil {
				err = stream.Send(out.ModelStreamInferResponse)
			}
			out.holds.release()
		}
		sent <- err
	}()
	var failed error
	for {
		r, err := stream.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				failed = err
			}
			break
		}
		answer := make(streamAnswer, 1)
		inOrder <- answer
		var queued func()
		var turn chan struct{}
		if r.GetParameters()["sequence_id"] != nil {
			turn = make(chan struct{})
			queued = sync.OnceFunc(func() { close(turn) })
		}
		holds := g.s.memory.done(r)
		go func() { answer <- heldAnswer{g.streamed(stream, r, queued, holds), holds} }()
		if queued != nil {
			<-turn
		}
	}
	close(inOrder)
	return errors.Join(failed, <-sent)
}

// streamed answers one request of a stream.
func (g *grpcService) streamed(stream pb.GRPCInferenceService_ModelStreamInferServer, r *pb.ModelInferRequest,
	queued func(), holds *claim) *pb.ModelStreamInferResponse {
	id, name, version := r.GetId(), r.GetModelName(), r.GetModelVersion()
	out, err := g.inferRecovered(stream.Context(), r, queued, holds)
	if err != nil {
		e, _ := clientError(err)
		return &pb.ModelStreamInferResponse{
			ErrorMessage: e.Error(), InferResponse: &pb.ModelInferResponse{
				Id: id, ModelName: name, ModelVersion: version, Parameters: map[string]*pb.InferParameter{
					finalResponse: oip.Bool(true),
				},
			},
		}
	}
	// Every request has one answer, which is its last: an empty one never follows, whether or not the client asks for
	// one by triton_enable_empty_final_response.
	out.Parameters[finalResponse] = oip.Bool(true)
	return &pb.ModelStreamInferResponse{InferResponse: out}
}
