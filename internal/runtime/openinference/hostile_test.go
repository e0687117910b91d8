package openinference

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/serving"
)

// launched returns an instance of the model m on a server, and a batch of one item.
func launched(t *testing.T, r pb.GRPCInferenceServiceServer) (dataplane.Runner, *dataplane.Batch) {
	t.Helper()
	address, _ := start(t, r)
	b, err := New(Config{
		Address: address, PollEvery: time.Millisecond, Models: map[serving.VariantID]Model{0: {Name: "m"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	run, err := b.Launch(t.Context(), dataplane.InstanceSpec{Variants: []serving.VariantID{0}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Close() })
	return run, &dataplane.Batch{Items: 1, Portions: []dataplane.Portion{{Items: 1, Inputs: words("a")}}}
}

// unfolding answers with many empty outputs.
type unfolding struct{ remote }

func (*unfolding) ModelInfer(context.Context, *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	out := &pb.ModelInferResponse{}
	for range 1 << 20 {
		out.Outputs = append(out.Outputs, &pb.ModelInferResponse_InferOutputTensor{})
	}
	return out, nil
}

// An answer that would unfold to gigabytes fails its batch and no more. It is counted before it is decoded.
func TestAnswersThatUnfoldAreRefused(t *testing.T) {
	run, b := launched(t, &unfolding{})
	err := run.Run(t.Context(), b)
	if err == nil || !strings.Contains(err.Error(), "server.limits.tensors") {
		t.Errorf("error %v, want one of too many tensors", err)
	}
}
