package server

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/api/memory"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// boundedCodec is the codec of protocol buffers. It counts what a message holds before it decodes it.
type boundedCodec struct {
	encoding.CodecV2
	bounds oip.Bounds
	memory *memory.Budget
}

func newBoundedCodec(b oip.Bounds, m *memory.Budget) *boundedCodec {
	return &boundedCodec{encoding.GetCodecV2(proto.Name), b, m}
}

// checkedRequest receives a request. The codec's own errors become codes.Internal, so that the codec leaves refused in
// it, for a handler to answer with.
type checkedRequest struct {
	*pb.ModelInferRequest
	refused error
}

// loadParameters is the field number of the parameters of a RepositoryModelLoadRequest.
const loadParameters = 3

// Unmarshal implements encoding.CodecV2.
func (c *boundedCodec) Unmarshal(data mem.BufferSlice, v any) error {
	var wire mem.Buffer
	if _, ok := v.(*checkedRequest); ok && data.Len() >= largeMessage {
		wire = mem.SliceBuffer(gatherAligned(data)) // its tensors stay there, see splitRaw
	} else {
		wire = data.MaterializeToBuffer(mem.DefaultBufferPool())
	}
	defer wire.Free()
	switch r := v.(type) {
	case *checkedRequest:
		if r.refused = c.bounds.CheckRequest(wire.ReadOnlyData()); r.refused != nil {
			return nil
		}
		holds := c.memory.Begin(access.Unknown)
		if r.refused = holds.Take(int64(wire.Len())); r.refused != nil {
			return nil
		}
		c.memory.Keep(r.ModelInferRequest, holds)
		if err := c.request(wire, r.ModelInferRequest); err != nil {
			c.memory.Done(r.ModelInferRequest).Release()
			return err
		}
		return nil
	case *pb.RepositoryModelLoadRequest: // it may carry a whole model
		if err := c.bounds.CheckParameters(wire.ReadOnlyData(), loadParameters); err != nil {
			return err
		}
	default:
		if wire.Len() > maxControlMessage {
			return oip.Errorf(oip.TooLarge, "", "%T has %d bytes, at most %d are taken", v, wire.Len(),
				maxControlMessage)
		}
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{wire}, v)
}

// maxControlMessage bounds messages that carry names only, in bytes.
const maxControlMessage = 1 << 16

// wireStatus is the gRPC status of an error of a message's bounds.
func wireStatus(err error) error {
	e, _ := clientError(err)
	return status.Error(e.Code.GRPC(), e.Error())
}

// inferenceService is the protocol's service. Its ModelInfer receives requests within their bounds.
func inferenceService() *grpc.ServiceDesc {
	d := pb.GRPCInferenceService_ServiceDesc
	d.Methods = slices.Clone(d.Methods)
	at := slices.IndexFunc(d.Methods, func(m grpc.MethodDesc) bool { return m.MethodName == "ModelInfer" })
	d.Methods[at].Handler = func(srv any, ctx context.Context, receive func(any) error,
		intercept grpc.UnaryServerInterceptor) (any, error) {
		in := checkedRequest{ModelInferRequest: new(pb.ModelInferRequest)}
		if err := receive(&in); err != nil {
			return nil, err
		}
		if in.refused != nil {
			return nil, wireStatus(in.refused)
		}
		return intercept(ctx, in.ModelInferRequest,
			&grpc.UnaryServerInfo{Server: srv, FullMethod: pb.GRPCInferenceService_ModelInfer_FullMethodName},
			func(ctx context.Context, r any) (any, error) {
				return srv.(pb.GRPCInferenceServiceServer).ModelInfer(ctx, r.(*pb.ModelInferRequest))
			})
	}
	return &d
}
