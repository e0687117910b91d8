package openinference

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// boundedCodec counts what an answer holds before it decodes it: a faulty server must not take this one down.
type boundedCodec struct{ encoding.CodecV2 }

func newBoundedCodec() boundedCodec { return boundedCodec{encoding.GetCodecV2(proto.Name)} }

// Unmarshal implements encoding.CodecV2.
func (c boundedCodec) Unmarshal(data mem.BufferSlice, v any) error {
	wire := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer wire.Free()
	if _, answer := v.(*pb.ModelInferResponse); answer {
		if err := (oip.Bounds{}).CheckResponse(wire.ReadOnlyData()); err != nil {
			return err
		}
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{wire}, v)
}
