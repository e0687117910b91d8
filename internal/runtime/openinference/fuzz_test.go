package openinference

import (
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/bounded"
	"github.com/sluice-serving/sluice/tensor"
)

// FuzzAnswer: no bytes of a model server make its answer panic, hang, or take much memory, and what is handed to the
// queries of the batch is valid.
func FuzzAnswer(f *testing.F) {
	for _, r := range []int64{1, 2, 3} {
		out := &pb.ModelInferResponse{}
		t := tensor.Tensor{Name: "y", DType: tensor.FP32, Shape: []int64{r, 1}, Data: make([]byte, 4*r)}
		oip.EncodeOutputs(out, []tensor.Tensor{t}, nil)
		wire, err := proto.Marshal(out)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	f.Add([]byte{0x2a, 0})
	d := description{outputs: []tensor.Spec{{Name: "y", DType: tensor.FP32, Shape: []int64{-1, -1}}}, batched: true}
	f.Fuzz(func(t *testing.T, wire []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(wire)))()
		answer := &pb.ModelInferResponse{}
		if err := newBoundedCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(wire)}, answer); err != nil {
			return
		}
		outputs, err := oip.DecodeOutputs(answer)
		if err == nil {
			err = d.check(outputs, 2)
		}
		parts := []dataplane.Portion{{Items: 1}, {Items: 1}}
		if err != nil || split(parts, 2, outputs, true) != nil {
			return
		}
		for _, p := range parts {
			for _, o := range p.Outputs {
				if err := o.Validate(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
