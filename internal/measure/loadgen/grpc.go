package loadgen

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// maxMessage is the largest answer that is read, in bytes.
const maxMessage = 256 << 20

type grpcTarget struct {
	conns []*grpc.ClientConn
	next  atomic.Uint64
}

// DialGRPC returns a Target that speaks gRPC to host:port. Requests use its connections in turn; 0 means 2. A
// connection is made at its first use and again, within a second, after it is lost. A nil config means no TLS.
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
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff: backoff.Config{
					BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second,
				}, MinConnectTimeout: 2 * time.Second,
			}),
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
	params := make(map[string]*pb.InferParameter, 8)
	if r.Sequence != "" {
		params["sequence_id"] = oip.SequenceID(r.Sequence)
		params["sequence_start"], params["sequence_end"] = oip.Bool(r.First), oip.Bool(r.Last)
		if r.Rate > 0 {
			params["sequence_rate"] = oip.Double(r.Rate)
		}
	}
	if r.StageTimings {
		params["stage_timings"] = oip.Bool(true)
	}
	if r.Timeout > 0 {
		params["timeout"] = oip.Int(max(1, r.Timeout.Microseconds()))
	}
	if r.Priority != 0 {
		params["priority"] = oip.Int(int64(r.Priority))
	}
	if r.MinAccuracy > 0 {
		params["min_accuracy"] = oip.Double(r.MinAccuracy)
	}
	ask := oip.EncodeRequest(r.Model, r.Version, "", r.Inputs, params)
	for _, name := range r.Outputs {
		ask.Outputs = append(ask.Outputs, &pb.ModelInferRequest_InferRequestedOutputTensor{Name: name})
	}
	var header, trailer metadata.MD
	answer, err := pb.NewGRPCInferenceServiceClient(t.conn()).ModelInfer(ctx, ask, grpc.Header(&header),
		grpc.Trailer(&trailer))
	if err != nil {
		return nil, grpcError(err, len(header)+len(trailer) > 0)
	}
	a := &Answer{Variant: answer.GetModelVersion()}
	for name, v := range answer.GetParameters() {
		switch x := v.GetParameterChoice().(type) {
		case *pb.InferParameter_StringParam:
			a.parameter(name, x.StringParam, 0, 0)
		case *pb.InferParameter_Int64Param:
			a.parameter(name, "", x.Int64Param, float64(x.Int64Param))
		case *pb.InferParameter_Uint64Param:
			a.parameter(name, "", int64(min(x.Uint64Param, math.MaxInt64)), float64(x.Uint64Param))
		case *pb.InferParameter_DoubleParam:
			a.parameter(name, "", clampInt(x.DoubleParam), x.DoubleParam)
		}
	}
	a.Outputs, err = oip.DecodeOutputs(answer)
	return a, err
}

// grpcError maps a status to an outcome. Only a server refuses: when the transport reports UNAVAILABLE for a lost
// connection, the query failed.
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
	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	m, err := pb.NewGRPCInferenceServiceClient(t.conn()).ModelMetadata(ctx, &pb.ModelMetadataRequest{Name: model},
		grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("metadata of model %q: %w", model, err)
	}
	var specs []tensor.Spec
	for _, in := range m.GetInputs() {
		specs = append(specs, tensor.Spec{
			Name: in.GetName(), DType: tensor.ParseDType(in.GetDatatype()), Shape: in.GetShape(),
		})
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
