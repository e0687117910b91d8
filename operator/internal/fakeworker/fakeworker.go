// Package fakeworker answers as machines of a fleet do, with models that only take time.
package fakeworker

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// Workers answer at the addresses of any number of pods, each with models of its own.
type Workers struct {
	pb.UnimplementedGRPCInferenceServiceServer
	takes func(items int64) time.Duration

	mu     sync.Mutex
	loaded map[claim]map[string]bool // runs that need a model, by the pod's address and the model
	lies   map[string]Lie            // by the pod's address
}

// Lie is how answers are not what they should be.
type Lie int

// The lies.
const (
	None Lie = iota
	MoreRows
	FewerBytes
	OtherName
	OtherType
	NoOutputs
	Lies // how many there are
)

// Lie has the answers of a pod be wrong from now on, or right.
func (w *Workers) Lie(address string, l Lie) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lies[address] = l
}

// New returns workers on which a batch takes what takes says.
func New(takes func(items int64) time.Duration) *Workers {
	return &Workers{takes: takes, loaded: make(map[claim]map[string]bool),
		lies: make(map[string]Lie)}
}

// claim is a model at the address of a pod.
type claim struct{ address, model string }

// owner is the run that a call comes from: as in a real node, none unloads what another one needs.
func owner(ctx context.Context) string {
	m, _ := metadata.FromIncomingContext(ctx)
	return strings.Join(m.Get(oip.OwnerHeader), ",")
}

// address is that of the pod that a call was sent to.
func address(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok || p.LocalAddr == nil {
		return ""
	}
	host, _, err := net.SplitHostPort(p.LocalAddr.String())
	if err != nil {
		return ""
	}
	return host
}

func (w *Workers) has(ctx context.Context, model string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.loaded[claim{address(ctx), model}]) > 0
}

// ServerMetadata implements pb.GRPCInferenceServiceServer.
func (w *Workers) ServerMetadata(context.Context, *pb.ServerMetadataRequest) (*pb.ServerMetadataResponse, error) {
	return &pb.ServerMetadataResponse{Name: "simulated"}, nil
}

// ModelReady implements pb.GRPCInferenceServiceServer.
func (w *Workers) ModelReady(ctx context.Context, r *pb.ModelReadyRequest) (*pb.ModelReadyResponse, error) {
	return &pb.ModelReadyResponse{Ready: w.has(ctx, r.GetName())}, nil
}

// ModelMetadata implements pb.GRPCInferenceServiceServer.
func (w *Workers) ModelMetadata(ctx context.Context, r *pb.ModelMetadataRequest) (*pb.ModelMetadataResponse, error) {
	if !w.has(ctx, r.GetName()) {
		return nil, status.Error(codes.NotFound, "the model is not loaded")
	}
	return &pb.ModelMetadataResponse{Name: r.GetName(), Platform: "simulated",
		Inputs:  []*pb.ModelMetadataResponse_TensorMetadata{{Name: "x", Datatype: "FP32", Shape: []int64{-1, 1}}},
		Outputs: []*pb.ModelMetadataResponse_TensorMetadata{{Name: "y", Datatype: "FP32", Shape: []int64{-1, 1}}}}, nil
}

// RepositoryModelLoad implements pb.GRPCInferenceServiceServer.
func (w *Workers) RepositoryModelLoad(ctx context.Context, r *pb.RepositoryModelLoadRequest) (
	*pb.RepositoryModelLoadResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what := claim{address(ctx), r.GetModelName()}
	if w.loaded[what] == nil {
		w.loaded[what] = make(map[string]bool)
	}
	w.loaded[what][owner(ctx)] = true
	return &pb.RepositoryModelLoadResponse{}, nil
}

// RepositoryModelUnload implements pb.GRPCInferenceServiceServer.
func (w *Workers) RepositoryModelUnload(ctx context.Context, r *pb.RepositoryModelUnloadRequest) (
	*pb.RepositoryModelUnloadResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what := claim{address(ctx), r.GetModelName()}
	if delete(w.loaded[what], owner(ctx)); len(w.loaded[what]) == 0 {
		delete(w.loaded, what)
	}
	return &pb.RepositoryModelUnloadResponse{}, nil
}

// ModelInfer implements pb.GRPCInferenceServiceServer.
func (w *Workers) ModelInfer(ctx context.Context, r *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	if !w.has(ctx, r.GetModelName()) {
		return nil, status.Error(codes.NotFound, "the model is not loaded")
	}
	in, err := oip.DecodeRequest(r, nil)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	busy := time.NewTimer(w.takes(in[0].Shape[0]))
	defer busy.Stop()
	select {
	case <-busy.C:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	w.mu.Lock()
	lie := w.lies[address(ctx)]
	w.mu.Unlock()
	y := tensor.Tensor{Name: "y", DType: in[0].DType, Shape: in[0].Shape, Data: in[0].Data}
	switch lie {
	case MoreRows:
		y.Shape = []int64{y.Shape[0] + 1, y.Shape[1]}
		y.Data = append(slices.Clone(y.Data), y.Data[:int64(len(y.Data))/in[0].Shape[0]]...)
	case FewerBytes:
		y.Data = y.Data[:len(y.Data)-1]
	case OtherName:
		y.Name = "z"
	case OtherType:
		y.DType = tensor.Int32
	}
	out := &pb.ModelInferResponse{ModelName: r.GetModelName(), ModelVersion: "1"}
	if lie != NoOutputs {
		oip.EncodeOutputs(out, []tensor.Tensor{y}, nil)
	}
	return out, nil
}
