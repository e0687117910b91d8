package openinference

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	triton "github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// scripted describes an output y, FP32 [-1, 2], of a batched model, and answers with outputs of the test's choice.
type scripted struct {
	remote
	outputs []tensor.Tensor
	err     error
	two     bool // it describes an output z, too
	asked   []string
}

func (s *scripted) ModelMetadata(context.Context, *pb.ModelMetadataRequest) (*pb.ModelMetadataResponse, error) {
	out := &pb.ModelMetadataResponse{
		Outputs: []*pb.ModelMetadataResponse_TensorMetadata{{Name: "y", Datatype: "FP32", Shape: []int64{-1, 2}}},
	}
	if s.two {
		out.Outputs = append(out.Outputs, &pb.ModelMetadataResponse_TensorMetadata{Name: "z", Datatype: "FP32",
			Shape: []int64{-1, 2}})
	}
	return out, nil
}

func (*scripted) ModelConfig(context.Context, *pb.ModelConfigRequest) (*pb.ModelConfigResponse, error) {
	return &pb.ModelConfigResponse{Config: &triton.ModelConfig{MaxBatchSize: proto.Int32(8)}}, nil
}

func (s *scripted) ModelInfer(_ context.Context, r *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	out := &pb.ModelInferResponse{}
	s.asked = nil
	for _, o := range r.Outputs {
		s.asked = append(s.asked, o.Name)
	}
	oip.EncodeOutputs(out, s.outputs, nil)
	return out, s.err
}

// An answer that does not fit what the server says of its model is the server's fault, and is known as such. What the
// server wrote is for the log.
func TestAnswersAreCheckedAgainstMetadata(t *testing.T) {
	of := func(name string, d tensor.DType, shape ...int64) tensor.Tensor {
		n, err := tensor.Elements(shape, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		return tensor.Tensor{Name: name, DType: d, Shape: shape, Data: make([]byte, int(n)*d.Size())}
	}
	for _, x := range []struct {
		name    string
		outputs []tensor.Tensor
		want    string
	}{
		{"as described", []tensor.Tensor{of("y", tensor.FP32, 1, 2)}, ""},
		{"with another beside", []tensor.Tensor{of("z", tensor.Int8, 7), of("y", tensor.FP32, 1, 2)}, ""},
		{"no outputs", nil, "no outputs"},
		{"another name", []tensor.Tensor{of("z", tensor.FP32, 1, 2)}, `"y" is missing`},
		{"another type", []tensor.Tensor{of("y", tensor.FP64, 1, 2)}, "FP64"},
		{"another rank", []tensor.Tensor{of("y", tensor.FP32, 2)}, "shape [2]"},
		{"another shape", []tensor.Tensor{of("y", tensor.FP32, 1, 3)}, "shape [1 3]"},
		{"more rows", []tensor.Tensor{of("y", tensor.FP32, 2, 2)}, "rows"},
		{"no rows", []tensor.Tensor{of("y", tensor.FP32, 0, 2)}, "rows"},
		{"garbage", []tensor.Tensor{{Name: "y", DType: tensor.FP32, Shape: []int64{1, 2}, Data: []byte{1}}}, "y"},
	} {
		run, b := launched(t, &scripted{outputs: x.outputs})
		err := run.Run(t.Context(), b)
		var r *dataplane.RemoteError
		switch {
		case x.want == "" && err != nil:
			t.Errorf("%s: %v", x.name, err)
		case x.want != "" && (!errors.As(err, &r) || !r.WrongAnswer || !strings.Contains(err.Error(), x.want)):
			t.Errorf("%s: %v, want a wrong answer that says %s", x.name, err, x.want)
		}
	}
	run, b := launched(t, &scripted{err: status.Error(codes.Internal, "the secret of the server")})
	err := run.Run(t.Context(), b)
	if err == nil || !strings.Contains(err.Error(), "secret") || errors.Is(err, dataplane.ErrInstanceLost) {
		t.Errorf("%v: want an error for the log that says what the server wrote", err)
	}
	told := &dataplane.Error{Cause: err}
	if strings.Contains(told.Error(), "secret") || strings.Contains(told.Error(), "127.0.0.1") {
		t.Errorf("clients read %q", told)
	}
}

// A server is asked for the outputs that a batch needs, and for all where it needs all or they are not known.
func TestServersAreAskedForWhatIsWanted(t *testing.T) {
	y := tensor.Tensor{Name: "y", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)}
	z := y
	z.Name = "z"
	server := &scripted{two: true}
	run, b := launched(t, server)
	for _, x := range []struct {
		wanted, asked []string
		gives         []tensor.Tensor
	}{
		{nil, nil, []tensor.Tensor{y, z}}, {[]string{"z"}, []string{"z"}, []tensor.Tensor{z}},
		{[]string{"z", "y"}, nil, []tensor.Tensor{y, z}}, {[]string{"another"}, nil, []tensor.Tensor{y, z}},
	} {
		b.Portions[0].Wanted, b.Portions[0].Outputs, server.outputs = x.wanted, nil, x.gives
		if err := run.Run(t.Context(), b); err != nil || !slices.Equal(server.asked, x.asked) ||
			len(b.Portions[0].Outputs) != len(x.gives) {
			t.Errorf("%q: asked for %q, %d outputs, %v", x.wanted, server.asked, len(b.Portions[0].Outputs), err)
		}
	}
	b.Portions[0].Wanted = []string{"y"}
	server.outputs = []tensor.Tensor{z}
	if err := run.Run(t.Context(), b); err == nil || !strings.Contains(err.Error(), `"y" is missing`) {
		t.Errorf("the output that is wanted is missing: %v", err)
	}
}

// What could not be divided among the queries of a batch is no answer to one of them either. A model that takes one
// query at a time may answer with any number of rows.
func TestRowsOfABatchedModel(t *testing.T) {
	y := []tensor.Tensor{{Name: "y", DType: tensor.FP32, Shape: []int64{2, 1}, Data: make([]byte, 8)}}
	for _, x := range []struct {
		items   int
		batched bool
		ok      bool
	}{{1, false, true}, {1, true, false}, {2, true, true}} {
		parts := []dataplane.Portion{{Items: x.items}}
		if err := split(parts, x.items, y, x.batched); (err == nil) != x.ok ||
			x.ok && len(parts[0].Outputs) != 1 {
			t.Errorf("%+v: %v, %v", x, err, parts[0].Outputs)
		}
	}
}
