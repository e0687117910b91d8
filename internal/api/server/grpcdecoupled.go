package server

import (
	"context"
	"sync"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/memory"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// wantsEmptyFinal is the parameter of requests that ask for an empty last answer.
const wantsEmptyFinal = "triton_enable_empty_final_response"

// streamSender sends answers on a stream, one at a time.
type streamSender struct {
	mu     sync.Mutex
	stream pb.GRPCInferenceService_ModelStreamInferServer
}

func (s *streamSender) send(r *pb.ModelStreamInferResponse) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream.Send(r)
}

// streamError is the answer to a request of a stream that has failed.
func streamError(id, name, version string, err error) *pb.ModelStreamInferResponse {
	e, _ := clientError(err)
	return &pb.ModelStreamInferResponse{
		ErrorMessage: e.Error(), InferResponse: &pb.ModelInferResponse{
			Id: id, ModelName: name, ModelVersion: version, Parameters: map[string]*pb.InferParameter{
				finalResponse: oip.Bool(true),
			},
		},
	}
}

// streamDecoupled sends the answers to a request to a decoupled model as they come. An empty one follows if the client
// asks for it: it cannot know otherwise that none will come. Requests to such models do not wait for each other.
func (g *grpcService) streamDecoupled(to *streamSender, r *pb.ModelInferRequest, holds *memory.Claim) {
	ctx, stop := context.WithCancel(to.stream.Context())
	defer stop()
	id, name, version := r.GetId(), r.GetModelName(), r.GetModelVersion()
	empty := r.GetParameters()[wantsEmptyFinal].GetBoolParam()
	last, err := g.inferRecovered(ctx, r, call{partial: func(out *pb.ModelInferResponse) {
		if to.send(&pb.ModelStreamInferResponse{InferResponse: out}) != nil {
			stop() // the client is gone
		}
	}}, holds)
	switch {
	case err != nil:
		_ = to.send(streamError(id, name, version, err))
	case empty:
		_ = to.send(&pb.ModelStreamInferResponse{InferResponse: last})
	}
}

// inferDecoupled asks a decoupled model. Each answer goes to partial; the one that is returned is empty and the last.
func (g *grpcService) inferDecoupled(ctx context.Context, m *Model, r *pb.ModelInferRequest, query *dataplane.Request,
	wanted []oip.RequestedOutput, partial func(*pb.ModelInferResponse), holds *memory.Claim,
) (*pb.ModelInferResponse, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	version := m.Versions[len(m.Versions)-1].Version
	answer := func(final bool) *pb.ModelInferResponse {
		return &pb.ModelInferResponse{ModelName: m.Name, ModelVersion: version, Id: r.Id,
			Parameters: map[string]*pb.InferParameter{finalResponse: oip.Bool(final)}}
	}
	query.Partial = func(outputs []tensor.Tensor) {
		outputs, shared, err := g.s.deliver(m, outputs, wanted, query.Outputs, holds)
		if err != nil {
			stop(err)
			return
		}
		out := answer(false)
		oip.EncodeOutputs(out, outputs, shared)
		partial(out)
		holds.Give(tensor.TotalBytes(outputs))
	}
	_, last, err := g.s.infer(ctx, m, query)
	if err == nil && len(last.Outputs) > 0 {
		query.Partial(last.Outputs) // of a model that gives one answer, whatever its configuration says
	}
	if why := context.Cause(ctx); why != nil {
		return nil, why
	}
	if err != nil {
		return nil, err
	}
	return answer(true), nil
}
