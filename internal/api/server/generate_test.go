package server_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
	triton "github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// counting answers as many times as the first number of the input says, and then ends, or fails.
func counting(ctx context.Context, r *dataplane.Request) (*dataplane.Response, error) {
	one := func() []tensor.Tensor {
		return []tensor.Tensor{{Name: "y", DType: tensor.FP32, Shape: []int64{1, 2}, Data: r.Inputs[0].Data}}
	}
	if r.Partial == nil {
		return &dataplane.Response{Variant: 1, Outputs: one()}, nil
	}
	n := int(math.Float32frombits(binary.LittleEndian.Uint32(r.Inputs[0].Data)))
	for range max(n, -n) {
		r.Partial(one())
	}
	if n < 0 {
		return nil, &dataplane.Error{Outcome: serving.Failed, Reason: "the model failed", Cause: errors.New("it broke")}
	}
	return &dataplane.Response{Variant: 1}, nil
}

func decoupled(s *running) {
	s.p.model.Config = &triton.ModelConfig{
		ModelTransactionPolicy: &triton.ModelTransactionPolicy{Decoupled: true},
	}
}

func TestGenerate(t *testing.T) {
	s := start(t, server.Config{})
	s.p.infer = counting
	for _, x := range []struct {
		path, body string
		code       int
		want       string
	}{
		{model + "/generate", `{"x":[3,4],"id":"a"}`, 200,
			`{"model_name":"digits/v1","model_version":"2","id":"a","y":[3,4]}`},
		{model + "/versions/1/generate", `{"x":[3,4]}`, 200, `"y":[3,4]`},
		{model + "/generate_stream", `{"x":[3,4]}`, 200,
			"data: {\"model_name\":\"digits/v1\",\"model_version\":\"2\",\"y\":[3,4]}\n\n"},
		{model + "/generate", `{"x":[3]}`, 400, "has 1 elements"},
		{model + "/generate", `{}`, 400, "inputs"},
		{"/v2/models/none/generate_stream", `{}`, 404, "none"},
	} {
		if code, _, body := s.do(t, "POST", x.path, x.body); code != x.code || !strings.Contains(body, x.want) {
			t.Errorf("%s %s: %d %q, want %d %q", x.path, x.body, code, body, x.code, x.want)
		}
	}
	if code, _, _ := s.do(t, "GET", model+"/generate", ""); code != 405 {
		t.Errorf("GET: %d", code)
	}
}

// A decoupled model's answers are events as they come; an error behind them is one, too. Other ways to ask are refused.
func TestGenerateStreamOfADecoupledModel(t *testing.T) {
	s := start(t, server.Config{})
	s.p.infer = counting
	decoupled(s)
	code, h, body := s.do(t, "POST", model+"/generate_stream", `{"x":[3,4]}`)
	if code != 200 || strings.Count(body, "data: {") != 3 ||
		!strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") {
		t.Errorf("%d %v %q", code, h, body)
	}
	code, _, body = s.do(t, "POST", model+"/generate_stream", `{"x":[-2,4]}`)
	if code != 200 || strings.Count(body, "data: {") != 3 || !strings.Contains(body, `data: {"error":`) {
		t.Errorf("with an error: %d %q", code, body)
	}
	if code, _, body = s.do(t, "POST", model+"/generate", `{"x":[3,4]}`); code != 400 ||
		!strings.Contains(body, "use generate stream") {
		t.Errorf("generate: %d %q", code, body)
	}
	if code, _, body = s.do(t, "POST", model+"/infer",
		`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[3,4]}]}`); code != 501 ||
		!strings.Contains(body, "decoupled") {
		t.Errorf("infer: %d %q", code, body)
	}
}

// On a gRPC stream every answer is sent as it comes. An empty last one follows where the client asks for it.
func TestStreamOfADecoupledModel(t *testing.T) {
	s := start(t, server.Config{})
	s.p.infer = counting
	decoupled(s)
	c := s.client(t)
	for _, wants := range []bool{false, true} {
		stream, err := c.ModelStreamInfer(t.Context(), grpc.UseCompressor("deflate"))
		if err != nil {
			t.Fatal(err)
		}
		r := &pb.ModelInferRequest{
			ModelName: "digits/v1", Id: "7",
			Parameters: map[string]*pb.InferParameter{"triton_enable_empty_final_response": {
				ParameterChoice: &pb.InferParameter_BoolParam{BoolParam: wants},
			}},
			Inputs: []*pb.ModelInferRequest_InferInputTensor{{
				Name: "x", Datatype: "FP32", Shape: []int64{1, 2},
				Contents: &pb.InferTensorContents{Fp32Contents: []float32{2, 5}},
			}},
		}
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			out, err := stream.Recv()
			if err != nil {
				break
			}
			final := out.InferResponse.Parameters["triton_final_response"].GetBoolParam()
			kind := "empty"
			if len(out.InferResponse.Outputs) > 0 {
				kind = "answer"
			}
			if final {
				kind += " final"
			}
			if out.InferResponse.Id != "7" {
				t.Errorf("id %q", out.InferResponse.Id)
			}
			got = append(got, kind)
		}
		want := "answer,answer"
		if wants {
			want += ",empty final"
		}
		if strings.Join(got, ",") != want {
			t.Errorf("empty final %v: %q, want %q", wants, got, want)
		}
	}
	if _, err := c.ModelInfer(t.Context(), &pb.ModelInferRequest{ModelName: "digits/v1"}); err == nil ||
		!strings.Contains(err.Error(), "decoupled") {
		t.Errorf("ModelInfer: %v", err)
	}
}
