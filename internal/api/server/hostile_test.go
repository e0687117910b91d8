package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcgzip "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/bounded"
)

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// 64 KiB that unpack to 63 MiB of entries took gigabytes of memory and half a minute.
func TestSmallHTTPRequestsThatUnfoldAreRefused(t *testing.T) {
	many := `{"inputs":[` + strings.Repeat("{},", 20<<20) + `{}]}`
	for _, x := range []struct {
		name   string
		config server.Config
		body   string
		header []string
		status int
		key    string
	}{
		{"packed", server.Config{}, zipped(t, many), []string{"Content-Encoding", "gzip"}, 413,
			"server.limits.unpack_ratio"},
		{"entries", server.Config{}, many, nil, 400, "server.limits.tensors"},
		{"JSON", server.Config{}, strings.Repeat(" ", 4<<20), nil, 413, "server.limits.json"},
		{"parameters", server.Config{Message: oip.Bounds{Parameters: 1}}, `{"parameters":{"a":1,"b":2}}`, nil, 400,
			"server.limits.parameters"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := start(t, x.config)
			bounded.Run(t, 512<<20, func() { // a few copies of the body, on both sides
				code, _, body := s.do(t, "POST", model+"/infer", x.body, x.header...)
				if code != x.status || !strings.Contains(body, x.key) {
					t.Errorf("%d %s: want %d and %s", code, body, x.status, x.key)
				}
			})
		})
	}
}

func TestSmallGRPCRequestsThatUnfoldAreRefused(t *testing.T) {
	s := start(t, server.Config{})
	c := s.client(t)
	unfolding := func() *pb.ModelInferRequest {
		r := message()
		r.ModelName = "digits/v1"
		for range 1 << 20 {
			r.Inputs = append(r.Inputs, &pb.ModelInferRequest_InferInputTensor{})
		}
		return r
	}
	refused := func(how string, err error, code codes.Code, key string) {
		t.Helper()
		if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), key) {
			t.Errorf("%s: %v, want %v that names %s", how, err, code, key)
		}
	}
	_, err := c.ModelInfer(context.Background(), unfolding())
	refused("a call", err, codes.InvalidArgument, "server.limits.tensors")
	stream, err := c.ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(unfolding()); err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	refused("a stream", err, codes.InvalidArgument, "server.limits.tensors")
	_, err = c.ModelInfer(context.Background(), &pb.ModelInferRequest{ModelName: strings.Repeat("a", 32<<20)},
		grpc.UseCompressor(grpcgzip.Name))
	refused("a packed call", err, codes.Internal, "server.limits.unpack_ratio")
	_, err = c.ServerLive(context.Background(), &pb.ServerLiveRequest{})
	if err != nil {
		t.Errorf("the server does not live: %v", err)
	}
}

// Texts of errors are short whatever a client sent: they repeat what is wrong, and travel in headers over gRPC.
func TestErrorsRepeatLittleOfTheRequest(t *testing.T) {
	s := start(t, server.Config{})
	_, err := s.client(t).ModelInfer(t.Context(), &pb.ModelInferRequest{ModelName: strings.Repeat("a", 32<<20)})
	if status.Code(err) != codes.NotFound || len(err.Error()) > 4096 {
		t.Errorf("%.200v of %d bytes", err, len(err.Error()))
	}
	code, _, body := s.do(t, "POST", model+"/infer",
		`{"inputs":[{"name":"`+strings.Repeat("a", 1<<19)+`","datatype":"FP32","shape":[1],"data":[1]}]}`)
	if code != 400 || len(body) > 4096 {
		t.Errorf("%d %.200s of %d bytes", code, body, len(body))
	}
}

// A compressed request of an ordinary kind is taken over gRPC.
func TestPackedGRPCRequests(t *testing.T) {
	s := start(t, server.Config{})
	r := message()
	r.ModelName = "digits/v1"
	r.Inputs[0].Name, r.Inputs[0].Shape, r.RawInputContents[0] = "x", []int64{1, 2}, make([]byte, 8)
	if _, err := s.client(t).ModelInfer(t.Context(), r, grpc.UseCompressor(grpcgzip.Name)); err != nil {
		t.Error(err)
	}
}
