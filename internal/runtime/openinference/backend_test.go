package openinference

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// remote is a server that gives back what it gets, under the name y, and counts.
type remote struct {
	pb.UnimplementedGRPCInferenceServiceServer
	ready  int // questions until the model is ready
	loaded string
	sizes  []int64
}

func (r *remote) ModelReady(context.Context, *pb.ModelReadyRequest) (*pb.ModelReadyResponse, error) {
	r.ready--
	return &pb.ModelReadyResponse{Ready: r.ready < 0}, nil
}

func (r *remote) RepositoryModelLoad(_ context.Context, q *pb.RepositoryModelLoadRequest) (
	*pb.RepositoryModelLoadResponse, error) {
	r.loaded = q.ModelName
	return &pb.RepositoryModelLoadResponse{}, nil
}

func (r *remote) RepositoryModelUnload(context.Context, *pb.RepositoryModelUnloadRequest) (
	*pb.RepositoryModelUnloadResponse, error) {
	r.loaded = ""
	return &pb.RepositoryModelUnloadResponse{}, nil
}

func (r *remote) ModelMetadata(context.Context, *pb.ModelMetadataRequest) (*pb.ModelMetadataResponse, error) {
	return &pb.ModelMetadataResponse{
		Inputs: []*pb.ModelMetadataResponse_TensorMetadata{{Name: "x", Datatype: "BYTES", Shape: []int64{-1}}},
	}, nil
}

func (r *remote) ModelInfer(_ context.Context, q *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	in, err := oip.DecodeRequest(q, nil)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if q.ModelName == "bad" {
		return nil, status.Error(codes.InvalidArgument, "no such thing")
	}
	r.sizes = append(r.sizes, in[0].Shape[0])
	in[0].Name = "y"
	out := &pb.ModelInferResponse{}
	oip.EncodeOutputs(out, in, nil)
	return out, nil
}

func start(t *testing.T, r pb.GRPCInferenceServiceServer) (address string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterGRPCInferenceServiceServer(s, r)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	stop = func() { s.Stop(); <-done }
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

func words(w ...string) []tensor.Tensor {
	t := tensor.Tensor{Name: "x", DType: tensor.Bytes, Shape: []int64{int64(len(w))}}
	for _, s := range w {
		t.Data = tensor.AppendBytes(t.Data, []byte(s))
	}
	return []tensor.Tensor{t}
}

func TestBatches(t *testing.T) {
	r := &remote{ready: 2}
	address, stop := start(t, r)
	b, err := New(Config{
		Address: address, LoadModels: true, PollEvery: time.Millisecond,
		Models: map[serving.VariantID]Model{0: {Name: "m"}, 1: {Name: "bad"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	in, _, err := b.Interface(t.Context(), 0)
	if err != nil || in[0].DType != tensor.Bytes {
		t.Errorf("%+v %v", in, err)
	}
	run, err := b.Launch(t.Context(), dataplane.InstanceSpec{Variants: []serving.VariantID{0}})
	if err != nil || r.loaded != "m" {
		t.Fatal(err, r.loaded)
	}
	defer run.Close()
	parts := []dataplane.Portion{
		{Items: 2, Inputs: words("a", "bb")}, {Items: 1, Inputs: words("")}, {Items: 1, Inputs: words("dddd")},
	}
	if err := run.Run(t.Context(), &dataplane.Batch{Items: 4, Portions: parts}); err != nil {
		t.Fatal(err)
	}
	if len(r.sizes) != 1 || r.sizes[0] != 4 {
		t.Errorf("the server saw batches of %v, want one of 4", r.sizes)
	}
	for k, want := range []string{"\x01\x00\x00\x00a\x02\x00\x00\x00bb", "\x00\x00\x00\x00", "\x04\x00\x00\x00dddd"} {
		if got := string(parts[k].Outputs[0].Data); got != want || parts[k].Outputs[0].Name != "y" {
			t.Errorf("part %d: %q, want %q", k, got, want)
		}
	}
	// What the server refuses is the batch's fault, not the instance's.
	err = run.Run(t.Context(), &dataplane.Batch{
		Variant: 1, Items: 1, Portions: []dataplane.Portion{{Items: 1, Inputs: words("a")}},
	})
	if err == nil || errors.Is(err, dataplane.ErrInstanceLost) || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("refused: %v", err)
	}
	err = run.Run(t.Context(), &dataplane.Batch{
		Items: 2, Portions: []dataplane.Portion{
			{Items: 1, Inputs: words("a")}, {
				Items: 1, Inputs: []tensor.Tensor{{Name: "x", DType: tensor.Int8, Shape: []int64{1}, Data: []byte{1}}},
			},
		},
	})
	if err == nil || errors.Is(err, dataplane.ErrInstanceLost) {
		t.Errorf("parts that do not fit together: %v", err)
	}
	if err := run.Unload(t.Context(), 0); err != nil || r.loaded != "" {
		t.Error(err, r.loaded)
	}
	stop()
	portions := []dataplane.Portion{{Items: 1, Inputs: words("a")}}
	err = run.Run(t.Context(), &dataplane.Batch{Items: 1, Portions: portions})
	if !errors.Is(err, dataplane.ErrInstanceLost) {
		t.Errorf("a server that is gone: %v", err)
	}
}

// A server holds one copy of a model for all instances: it goes with the last that needs it, by unload or at the end.
func TestModelsGoWithTheirLastInstance(t *testing.T) {
	r := &remote{}
	address, stop := start(t, r)
	defer stop()
	b, err := New(Config{
		Address: address, LoadModels: true, PollEvery: time.Millisecond,
		Models: map[serving.VariantID]Model{0: {Name: "m"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var runs [3]dataplane.Runner
	for i := range runs {
		if runs[i], err = b.Launch(t.Context(), dataplane.InstanceSpec{Variants: []serving.VariantID{0}}); err != nil ||
			r.loaded != "m" {
			t.Fatal(err, r.loaded)
		}
	}
	for i, end := range []func() error{
		func() error { return runs[0].Unload(t.Context(), 0) },
		func() error { return runs[0].Unload(t.Context(), 0) }, // twice is once
		runs[0].Close,
		runs[1].Close,
		func() error { return runs[2].Load(t.Context(), 0, 1) }, // twice is once
	} {
		if err := end(); err != nil || r.loaded != "m" {
			t.Fatalf("step %d: %v, the server holds %q", i, err, r.loaded)
		}
	}
	if err := runs[2].Close(); err != nil || r.loaded != "" {
		t.Errorf("after the last: %v, the server holds %q", err, r.loaded)
	}
}

func TestLaunchGivesUp(t *testing.T) {
	r := &remote{ready: 1 << 30}
	address, _ := start(t, r)
	b, err := New(Config{
		Address: address, PollEvery: time.Millisecond, Models: map[serving.VariantID]Model{0: {Name: "m"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.Launch(ctx, dataplane.InstanceSpec{Variants: []serving.VariantID{0}}); err == nil ||
		!strings.Contains(strings.ToLower(err.Error()), "deadline") { // the server may say so first, in its words
		t.Errorf("%v", err)
	}
	if _, err := b.Launch(t.Context(), dataplane.InstanceSpec{Variants: []serving.VariantID{7}}); err == nil {
		t.Error("a variant without a model was launched")
	}
	if _, err := New(Config{}); err == nil {
		t.Error("no address was taken")
	}
}
