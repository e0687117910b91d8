package server_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/tensor"
)

// BenchmarkLargeInput sends a tensor of 1 MiB over gRPC, in the message and in shared memory.
func BenchmarkLargeInput(b *testing.B) {
	const size = 1 << 20
	p := newFakeService()
	p.model.Inputs[0].Shape = []int64{-1, size / 4}
	p.infer = func(context.Context, *dataplane.Request) (*dataplane.Response, error) {
		return &dataplane.Response{Outputs: []tensor.Tensor{
			{Name: "y", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)},
		}}, nil
	}
	s, err := server.New(server.Config{HTTP: server.Off, GRPC: "127.0.0.1:0", SharedMemory: "/"}, p)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	defer func() { stop(); <-ended }()
	f, err := os.CreateTemp("/dev/shm", "sluice-bench-")
	if err != nil {
		b.Skip(err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err := f.Truncate(size); err != nil {
		b.Fatal(err)
	}
	c := clients(b, s.GRPCAddr(), 1)[0]
	if _, err := c.SystemSharedMemoryRegister(ctx, &pb.SystemSharedMemoryRegisterRequest{
		Name: "r", Key: "/" + filepath.Base(f.Name()), ByteSize: size,
	}); err != nil {
		b.Fatal(err)
	}
	data := make([]byte, size)
	request := func() *pb.ModelInferRequest {
		return oip.EncodeRequest("digits/v1", "", "", []tensor.Tensor{
			{Name: "x", DType: tensor.FP32, Shape: []int64{1, size / 4}, Data: data},
		}, nil)
	}
	shared := request()
	shared.RawInputContents = nil
	shared.Inputs[0].Parameters = map[string]*pb.InferParameter{
		"shared_memory_region": oip.String("r"), "shared_memory_byte_size": oip.Int(size),
	}
	for _, x := range []struct {
		name string
		r    *pb.ModelInferRequest
	}{{"message", request()}, {"shared", shared}} {
		b.Run(x.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := c.ModelInfer(ctx, x.r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
