package test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	triton "github.com/sluice-serving/sluice/internal/models/repository/pb"
)

// repeating is a model server whose model answers as many times as the first number of a request says, and fails behind
// these answers where that is negative.
type repeating struct{ modelServer }

func (*repeating) ModelConfig(context.Context, *pb.ModelConfigRequest) (*pb.ModelConfigResponse, error) {
	return &pb.ModelConfigResponse{Config: &triton.ModelConfig{
		ModelTransactionPolicy: &triton.ModelTransactionPolicy{Decoupled: true},
	}}, nil
}

func (*repeating) ModelStreamInfer(s pb.GRPCInferenceService_ModelStreamInferServer) error {
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
		n := int(math.Float32frombits(binary.LittleEndian.Uint32(in[0].Data)))
		for range max(n, -n) {
			out := &pb.ModelInferResponse{Id: r.Id}
			oip.EncodeOutputs(out, in, nil)
			if err := s.Send(&pb.ModelStreamInferResponse{InferResponse: out}); err != nil {
				return err
			}
		}
		if n < 0 {
			return status.Error(codes.Internal, "it broke")
		}
		if err := s.Send(&pb.ModelStreamInferResponse{InferResponse: &pb.ModelInferResponse{
			Id: r.Id, Parameters: map[string]*pb.InferParameter{"triton_final_response": oip.Bool(true)},
		}}); err != nil {
			return err
		}
	}
}

// A model of a remote server that gives any number of answers to a request gives them through sluice: over gRPC as they
// come, over HTTP as events. Answers that were given are not given again when the model fails behind them.
func TestDecoupledModelsOfRemoteServers(t *testing.T) {
	file := write(t, t.TempDir(), "sluice.yaml", `version: 1
device_types: [{name: any}]
workers: [{name: a, backend: {kind: openinference, address: %q}}]
system: {router: fcfs, batcher: greedy, options: {learn: true}}
apps:
  - name: repeat
    slo: {latency: 5s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 2]}]
    outputs: [{name: x, datatype: FP32, shape: [-1, 2]}]
    variants: [{name: repeat, max_batch: 4}]
placement: [{worker: a, app: repeat}]
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "127.0.0.1:0", admin: "off"}
`, startModelServer(t, &repeating{}))
	server := serve(t, "-f", file)
	base := server.url()
	until(t, func() bool { return get(base+"/v2/models/repeat/ready") == 200 })

	code, events := postTo(t, base+"/v2/models/repeat/generate_stream", `{"x":[3,4]}`)
	if code != http.StatusOK || strings.Count(events, `"x":[3,4]`) != 3 {
		t.Errorf("events: %d %q", code, events)
	}
	code, events = postTo(t, base+"/v2/models/repeat/generate_stream", `{"x":[-2,4]}`)
	if code != http.StatusOK || strings.Count(events, `"x":[-2,4]`) != 2 || strings.Count(events, `"error"`) != 1 {
		t.Errorf("events of a model that fails: %d %q", code, events)
	}

	conn, err := grpc.NewClient(server.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := pb.NewGRPCInferenceServiceClient(conn).ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"a": 2, "b": 3}
	for id, n := range map[string]float32{"a": 1, "b": 2} {
		if err := stream.Send(&pb.ModelInferRequest{
			ModelName: "repeat", Id: id,
			Parameters: map[string]*pb.InferParameter{"triton_enable_empty_final_response": oip.Bool(true)},
			Inputs: []*pb.ModelInferRequest_InferInputTensor{{
				Name: "x", Datatype: "FP32", Shape: []int64{1, 2},
				Contents: &pb.InferTensorContents{Fp32Contents: []float32{n, 0}},
			}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || answer.ErrorMessage != "" {
			t.Fatalf("%v %s", err, answer.GetErrorMessage())
		}
		r := answer.InferResponse
		want[r.Id]--
		if final := r.Parameters["triton_final_response"].GetBoolParam(); final != (want[r.Id] == 0) ||
			final != (len(r.Outputs) == 0) {
			t.Errorf("request %s: final %v, %d outputs, %d to come", r.Id, final, len(r.Outputs), want[r.Id])
		}
	}
	if want["a"] != 0 || want["b"] != 0 {
		t.Errorf("answers that did not come: %v", want)
	}
}
