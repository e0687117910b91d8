package server_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Outputs that are larger than one query's may be are refused with the key that sets it: 413, RESOURCE_EXHAUSTED. Those
// whose size is known are refused before the model runs; a client that asks for a smaller one is answered.
func TestOutputsThatAreTooLarge(t *testing.T) {
	s := start(t, server.Config{Output: 1000})
	c := s.client(t)
	s.p.model.Outputs = []tensor.Spec{
		{Name: "y", DType: tensor.FP32, Shape: []int64{-1, 2}}, {Name: "s", DType: tensor.Bytes, Shape: []int64{-1}},
		{Name: "large", DType: tensor.FP32, Shape: []int64{-1, 249}},
		{Name: "open", DType: tensor.FP32, Shape: []int64{-1, -1, 1000}},
	}
	var runs [][]string
	infer := s.p.infer
	s.p.infer = func(ctx context.Context, r *dataplane.Request) (*dataplane.Response, error) {
		runs = append(runs, r.Outputs)
		if slices.Contains(r.Outputs, "open") {
			return nil, &dataplane.Error{Query: 7, Outcome: serving.Failed, Reason: "the model failed",
				Cause: &dataplane.TooLargeError{Bytes: 4000, Limit: 1000}}
		}
		if infer != nil {
			return infer(ctx, r)
		}
		return &dataplane.Response{Outputs: []tensor.Tensor{
			{Name: "y", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)},
		}}, nil
	}
	const known, seen = "the outputs have 1008 bytes", "query 7: the outputs have 4000 bytes"
	for _, x := range []struct {
		asks []string
		want string // in the error
		run  bool
	}{
		{nil, known, false}, {[]string{"large", "y", "s"}, known, false}, {[]string{"y"}, "", true},
		{[]string{"open"}, seen, true}, {[]string{"large"}, "", true},
	} {
		runs = nil
		named := ""
		request := oip.EncodeRequest("digits/v1", "", "", []tensor.Tensor{
			{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)},
		}, nil)
		for _, name := range x.asks {
			named += `,{"name":"` + name + `"}`
			request.Outputs = append(request.Outputs, &pb.ModelInferRequest_InferRequestedOutputTensor{Name: name})
		}
		body := two
		if named != "" {
			body = strings.Replace(two, `"id"`, `"outputs":[`+named[1:]+`],"id"`, 1)
		}
		code, _, text := s.do(t, "POST", model+"/infer", body)
		_, err := c.ModelInfer(t.Context(), request)
		switch got := status.Convert(err); {
		case len(runs) > 0 != x.run || x.run && !slices.Equal(runs[0], x.asks):
			t.Errorf("%q: the model ran for %q", x.asks, runs)
		case x.want == "":
		case code != http.StatusRequestEntityTooLarge || !strings.Contains(text, x.want) ||
			!strings.Contains(text, "server.limits.output"):
			t.Errorf("%q over HTTP: %d %s", x.asks, code, text)
		case got.Code() != codes.ResourceExhausted || !strings.Contains(got.Message(), x.want) ||
			!strings.Contains(got.Message(), "server.limits.output"):
			t.Errorf("%q over gRPC: %v", x.asks, err)
		}
	}
}
