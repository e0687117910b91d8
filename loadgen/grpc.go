package loadgen

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// maxMessage bounds an answer, in bytes.
const maxMessage = 256 << 20

const (
	methodInfer    = "/inference.GRPCInferenceService/ModelInfer"
	methodMetadata = "/inference.GRPCInferenceService/ModelMetadata"
)

type grpcTarget struct {
	conns []*grpc.ClientConn
	next  atomic.Uint64
}

// DialGRPC returns a Target that speaks gRPC to host:port over so many connections, which requests take in turn; 0 means 2.
// It connects when first used, and again, within a second, after a loss. A nil config means no TLS.
func DialGRPC(address string, connections int, config *tls.Config) (Target, error) {
	if connections <= 0 {
		connections = 2
	}
	creds := insecure.NewCredentials()
	if config != nil {
		creds = credentials.NewTLS(config)
	}
	t := &grpcTarget{}
	for range connections {
		conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(creds),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}, MinConnectTimeout: 2 * time.Second}),
			grpc.WithDisableServiceConfig())
		if err != nil {
			t.Close()
			return nil, fmt.Errorf("grpc %s: %w", address, err)
		}
		t.conns = append(t.conns, conn)
	}
	return t, nil
}

func (t *grpcTarget) conn() *grpc.ClientConn {
	return t.conns[t.next.Add(1)%uint64(len(t.conns))]
}

// Infer implements Target.
func (t *grpcTarget) Infer(ctx context.Context, r *Request) (*Answer, error) {
	a := &Answer{}
	var header, trailer metadata.MD
	if err := t.conn().Invoke(ctx, methodInfer, r, a, grpc.Header(&header), grpc.Trailer(&trailer)); err != nil {
		return nil, grpcError(err, len(header)+len(trailer) > 0)
	}
	return a, nil
}

// grpcError sorts statuses into outcomes. Only a server can refuse: an UNAVAILABLE that the transport made up, for a
// connection that is lost or was never there, is a failure.
func grpcError(err error, answered bool) error {
	s := status.Convert(err)
	e := &Error{Outcome: serving.Failed, Message: s.Code().String() + ": " + s.Message()}
	switch s.Code() {
	case codes.Unavailable, codes.ResourceExhausted:
		if answered {
			e.Outcome = serving.Refused
		}
	case codes.DeadlineExceeded:
		e.Outcome = serving.Dropped
	case codes.Canceled:
		e.Outcome = serving.Cancelled
	}
	return e
}

// Inputs implements Target.
func (t *grpcTarget) Inputs(ctx context.Context, model string) ([]tensor.Spec, error) {
	req := rawMessage(protowire.AppendString(protowire.AppendTag(nil, fieldMetadataName, protowire.BytesType), model))
	var answer rawMessage
	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	if err := t.conn().Invoke(ctx, methodMetadata, &req, &answer, grpc.WaitForReady(true)); err != nil {
		return nil, fmt.Errorf("metadata of model %q: %w", model, err)
	}
	specs, err := unmarshalMetadata(answer)
	if err != nil {
		return nil, fmt.Errorf("metadata of model %q: %w", model, err)
	}
	return specs, nil
}

// Close implements Target.
func (t *grpcTarget) Close() error {
	var first error
	for _, c := range t.conns {
		if err := c.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

type rawMessage []byte

// codec carries the generator's own messages. Its name is that of the content type that servers expect.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *Request:
		return marshalInfer(m), nil
	case *rawMessage:
		return mem.BufferSlice{mem.SliceBuffer(*m)}, nil
	}
	return nil, fmt.Errorf("cannot encode %T", v)
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	b := data.Materialize()
	switch m := v.(type) {
	case *Answer:
		return unmarshalInfer(b, m)
	case *rawMessage:
		*m = b
		return nil
	}
	return fmt.Errorf("cannot decode into %T", v)
}
