package main

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"

	"google.golang.org/grpc"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	triton "github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// repeat stands in for Triton's model repeat_int32 on a server of its own: it answers a request once for each element
// of its input.
type repeat struct {
	pb.UnimplementedGRPCInferenceServiceServer
}

// serveRepeat answers at an address until the process ends.
func serveRepeat(address string) error {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	pb.RegisterGRPCInferenceServiceServer(s, repeat{})
	return s.Serve(l)
}

func (repeat) ModelReady(context.Context, *pb.ModelReadyRequest) (*pb.ModelReadyResponse, error) {
	return &pb.ModelReadyResponse{Ready: true}, nil
}

func (repeat) ModelMetadata(context.Context, *pb.ModelMetadataRequest) (*pb.ModelMetadataResponse, error) {
	type spec = pb.ModelMetadataResponse_TensorMetadata
	return &pb.ModelMetadataResponse{
		Inputs: []*spec{
			{Name: "IN", Datatype: "INT32", Shape: []int64{-1}},
			{Name: "DELAY", Datatype: "UINT32", Shape: []int64{-1}},
			{Name: "WAIT", Datatype: "UINT32", Shape: []int64{1}},
		},
		Outputs: []*spec{
			{Name: "OUT", Datatype: "INT32", Shape: []int64{1}}, {Name: "IDX", Datatype: "UINT32", Shape: []int64{1}},
		},
	}, nil
}

func (repeat) ModelConfig(context.Context, *pb.ModelConfigRequest) (*pb.ModelConfigResponse, error) {
	return &pb.ModelConfigResponse{Config: &triton.ModelConfig{
		ModelTransactionPolicy: &triton.ModelTransactionPolicy{Decoupled: true},
	}}, nil
}

func (repeat) ModelStreamInfer(s pb.GRPCInferenceService_ModelStreamInferServer) error {
	for {
		r, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		in, err := oip.DecodeRequest(r, nil)
		if err != nil {
			return err
		}
		send := func(out *pb.ModelInferResponse) error {
			out.Id = r.GetId()
			return s.Send(&pb.ModelStreamInferResponse{InferResponse: out})
		}
		for k := range len(in[0].Data) / 4 {
			out := &pb.ModelInferResponse{}
			oip.EncodeOutputs(out, []tensor.Tensor{
				{Name: "OUT", DType: tensor.Int32, Shape: []int64{1}, Data: in[0].Data[4*k : 4*k+4]},
				{
					Name: "IDX", DType: tensor.Uint32, Shape: []int64{1},
					Data: binary.LittleEndian.AppendUint32(nil, uint32(k)),
				},
			}, nil)
			if err := send(out); err != nil {
				return err
			}
		}
		if err := send(&pb.ModelInferResponse{Parameters: map[string]*pb.InferParameter{
			"triton_final_response": oip.Bool(true),
		}}); err != nil {
			return err
		}
	}
}
