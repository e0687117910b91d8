package server

import (
	"errors"
	"io"
	"sync"

	"github.com/sluice-serving/sluice/internal/api/memory"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
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
	holds *memory.Claim
}

// ModelStreamInfer implements the protocol. Requests run side by side. Answers come in the order of their requests:
// clients of models with one answer a request match them by position. Errors are answers on the stream. Requests of
// sequences are queued in the order in which they arrive, others as they are decoded.
func (g *grpcService) ModelStreamInfer(stream pb.GRPCInferenceService_ModelStreamInferServer) error {
	inOrder := make(chan streamAnswer, streamDepth-1) // one more is held by the sender
	sent := make(chan error, 1)
	out := &streamSender{stream: stream}
	go func() {
		var err error
		for a := range inOrder {
			next := <-a
			if err == nil {
				err = out.send(next.ModelStreamInferResponse)
			}
			next.holds.Release()
		}
		sent <- err
	}()
	var failed error
	var running sync.WaitGroup // requests to decoupled models
	for {
		r, err := stream.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				failed = err
			}
			break
		}
		if m, err := g.s.usable(r.GetModelName(), r.GetModelVersion()); err == nil && m.Decoupled() {
			holds := g.s.memory.Done(r)
			running.Go(func() {
				defer holds.Release()
				g.streamDecoupled(out, r, holds)
			})
			continue
		}
		answer := make(streamAnswer, 1)
		inOrder <- answer
		var queued func()
		var turn chan struct{}
		if r.GetParameters()["sequence_id"] != nil {
			turn = make(chan struct{})
			queued = sync.OnceFunc(func() { close(turn) })
		}
		holds := g.s.memory.Done(r)
		go func() { answer <- heldAnswer{g.streamed(stream, r, queued, holds), holds} }()
		if queued != nil {
			<-turn
		}
	}
	close(inOrder)
	err := <-sent
	running.Wait()
	return errors.Join(failed, err)
}

// streamed answers one request of a stream.
func (g *grpcService) streamed(stream pb.GRPCInferenceService_ModelStreamInferServer, r *pb.ModelInferRequest,
	queued func(), holds *memory.Claim) *pb.ModelStreamInferResponse {
	id, name, version := r.GetId(), r.GetModelName(), r.GetModelVersion()
	out, err := g.inferRecovered(stream.Context(), r, call{queued: queued}, holds)
	if err != nil {
		return streamError(id, name, version, err)
	}
	// A request to a model that is not decoupled has one answer, which is its last: an empty one never follows, whether
	// or not the client asks for one by triton_enable_empty_final_response.
	out.Parameters[finalResponse] = oip.Bool(true)
	return &pb.ModelStreamInferResponse{InferResponse: out}
}
