package scale

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// workers answer at the addresses of all simulated pods, each with models of its own. A batch takes a fixed time.
type workers struct {
	pb.UnimplementedGRPCInferenceServiceServer
	takes time.Duration
	port  int

	mu     sync.Mutex
	loaded map[claim]map[string]bool // runs that need a model, by the pod's address and the model

	ran atomic.Int64
}

func startWorkers(t *testing.T, takes time.Duration) *workers {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w := &workers{takes: takes, loaded: make(map[claim]map[string]bool)}
	if w.port, err = strconv.Atoi(text); err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterGRPCInferenceServiceServer(s, w)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		<-ended
	})
	return w
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

func (w *workers) has(ctx context.Context, model string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.loaded[claim{address(ctx), model}]) > 0
}

// ServerMetadata implements pb.GRPCInferenceServiceServer.
func (w *workers) ServerMetadata(context.Context, *pb.ServerMetadataRequest) (*pb.ServerMetadataResponse, error) {
	return &pb.ServerMetadataResponse{Name: "simulated"}, nil
}

// ModelReady implements pb.GRPCInferenceServiceServer.
func (w *workers) ModelReady(ctx context.Context, r *pb.ModelReadyRequest) (*pb.ModelReadyResponse, error) {
	return &pb.ModelReadyResponse{Ready: w.has(ctx, r.GetName())}, nil
}

// ModelMetadata implements pb.GRPCInferenceServiceServer.
func (w *workers) ModelMetadata(ctx context.Context, r *pb.ModelMetadataRequest) (*pb.ModelMetadataResponse, error) {
	if !w.has(ctx, r.GetName()) {
		return nil, status.Error(codes.NotFound, "the model is not loaded")
	}
	return &pb.ModelMetadataResponse{Name: r.GetName(), Platform: "simulated",
		Inputs:  []*pb.ModelMetadataResponse_TensorMetadata{{Name: "x", Datatype: "FP32", Shape: []int64{-1, 1}}},
		Outputs: []*pb.ModelMetadataResponse_TensorMetadata{{Name: "y", Datatype: "FP32", Shape: []int64{-1, 1}}}}, nil
}

// RepositoryModelLoad implements pb.GRPCInferenceServiceServer.
func (w *workers) RepositoryModelLoad(ctx context.Context, r *pb.RepositoryModelLoadRequest) (
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
func (w *workers) RepositoryModelUnload(ctx context.Context, r *pb.RepositoryModelUnloadRequest) (
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
func (w *workers) ModelInfer(ctx context.Context, r *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	if !w.has(ctx, r.GetModelName()) {
		return nil, status.Error(codes.NotFound, "the model is not loaded")
	}
	in, err := oip.DecodeRequest(r, nil)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	busy := time.NewTimer(w.takes)
	defer busy.Stop()
	select {
	case <-busy.C:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	w.ran.Add(1)
	out := &pb.ModelInferResponse{ModelName: r.GetModelName(), ModelVersion: "1"}
	oip.EncodeOutputs(out, []tensor.Tensor{{Name: "y", DType: in[0].DType, Shape: in[0].Shape, Data: in[0].Data}}, nil)
	return out, nil
}
