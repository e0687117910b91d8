package main

import (
	"context"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// identity stands in for Triton's backend of that name, which can take its time: on a server of its own it answers
// every model with its input INPUT0 as output OUTPUT0, after a delay. The datatype is INT32 for models whose name says
// so.
type identity struct {
	pb.UnimplementedGRPCInferenceServiceServer
	delay time.Duration
}

// serveIdentity answers at an address until the process ends.
func serveIdentity(address, delay string) error {
	d, err := time.ParseDuration(delay)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	pb.RegisterGRPCInferenceServiceServer(s, identity{delay: d})
	return s.Serve(l)
}

func (identity) ModelReady(context.Context, *pb.ModelReadyRequest) (*pb.ModelReadyResponse, error) {
	return &pb.ModelReadyResponse{Ready: true}, nil
}

func (identity) ModelMetadata(_ context.Context, r *pb.ModelMetadataRequest) (*pb.ModelMetadataResponse, error) {
	type spec = pb.ModelMetadataResponse_TensorMetadata
	kind := "FP32"
	if strings.HasSuffix(r.GetName(), "int32") {
		kind = "INT32"
	}
	shape := []int64{-1, -1}
	return &pb.ModelMetadataResponse{
		Inputs:  []*spec{{Name: "INPUT0", Datatype: kind, Shape: shape}},
		Outputs: []*spec{{Name: "OUTPUT0", Datatype: kind, Shape: shape}},
	}, nil
}

func (i identity) ModelInfer(ctx context.Context, r *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	in, err := oip.DecodeRequest(r, nil)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(i.delay):
	}
	out := &pb.ModelInferResponse{ModelName: r.GetModelName()}
	in[0].Name = "OUTPUT0"
	oip.EncodeOutputs(out, []tensor.Tensor{in[0]}, nil)
	return out, nil
}
