package server

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/memory"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// serverName is the server's name in metadata where the configuration has no other.
const serverName = "sluice"

// extensions are the protocol's extensions that the server implements.
var extensions = []string{
	"classification", "sequence", "sequence(string_id)", "model_repository", "schedule_policy", "model_configuration",
	"system_shared_memory", "binary_tensor_data", "parameters", "statistics", "trace", "logging", "generate",
}

// extensions are all that the metadata list.
func (c *Config) extensions() []string { return append(slices.Clone(extensions), c.Extensions...) }

// grpcOptions are server settings for existing clients. The default limit of 4 MiB and the default keep-alive
// enforcement would reject many of them.
func grpcOptions(c *Config, codec *boundedCodec) []grpc.ServerOption {
	return append(c.GRPCLimits(),
		grpc.ForceServerCodecV2(codec),
		grpc.UnaryInterceptor(func(ctx context.Context, r any, i *grpc.UnaryServerInfo,
			next grpc.UnaryHandler) (out any, err error) {
			defer recoverCall(c, i.FullMethod, &err)
			return next(ctx, r)
		}),
		grpc.ChainUnaryInterceptor(c.Intercept...),
		grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, i *grpc.StreamServerInfo,
			next grpc.StreamHandler) (err error) {
			return watchedStream(c, i.FullMethod, s, func(s grpc.ServerStream) error { return next(srv, s) })
		}))
}

// streamWorkers is how many goroutines of a gRPC server are kept for calls. A new one would grow its stack on its way
// to the handler in every call, which is a tenth of what a small call costs. More calls at once get goroutines of
// their own.
const streamWorkers = 128

// GRPCLimits are the configuration's bounds of size, number and time as options of a gRPC server.
func (c *Config) GRPCLimits() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(int(c.MaxRequest)),
		grpc.MaxSendMsgSize(int(c.MaxRequest)),
		grpc.MaxConcurrentStreams(uint32(c.Streams)),
		grpc.MaxHeaderListSize(uint32(c.MaxHeader)),
		grpc.ConnectionTimeout(c.ReadTimeout),
		grpc.WaitForHandlers(true),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: 10 * time.Second, PermitWithoutStream: true,
		}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: c.IdleTimeout, MaxConnectionAge: c.ConnectionAge,
			MaxConnectionAgeGrace: c.DrainTimeout, Time: 30 * time.Second, Timeout: 20 * time.Second,
		}),
	}
}

// recoverCall turns a panic into an error of its call. Other calls are not affected.
func recoverCall(c *Config, method string, err *error) {
	if x := recover(); x != nil {
		c.panicked(method, x)
		*err = status.Error(codes.Internal, "internal error")
	}
}

// recovered tells of a panic of a handler and breaks off its answer. Other requests are not affected.
func (c *Config) recovered(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if x := recover(); x != nil {
				if x != http.ErrAbortHandler { //nolint:errorlint // what net/http compares
					c.panicked(r.Method+" "+r.URL.Path, x)
				}
				panic(http.ErrAbortHandler)
			}
		}()
		h.ServeHTTP(w, r)
	})
}

// panicked tells of the panic of a request. It is called while the goroutine panics.
func (c *Config) panicked(what string, x any) {
	c.Trouble(fmt.Errorf("%.200s: %w", what, &dataplane.Panic{What: "request", Value: x, Stack: debug.Stack()}))
}

// grpcService answers the gRPC calls of the protocol.
type grpcService struct {
	pb.UnimplementedGRPCInferenceServiceServer
	s *Server
}

// failure turns an error into a gRPC status. The trailer retry-after-ms says when to try again.
func failure(ctx context.Context, err error) error {
	e, retry := clientError(err)
	if retry > 0 {
		_ = grpc.SetTrailer(ctx, metadata.Pairs("retry-after-ms", strconv.FormatInt(retry.Milliseconds(), 10)))
	}
	return status.Error(e.Code.GRPC(), e.Error())
}

// ServerLive implements the protocol.
func (g *grpcService) ServerLive(context.Context, *pb.ServerLiveRequest) (*pb.ServerLiveResponse, error) {
	return &pb.ServerLiveResponse{Live: true}, nil
}

// ServerReady implements the protocol.
func (g *grpcService) ServerReady(context.Context, *pb.ServerReadyRequest) (*pb.ServerReadyResponse, error) {
	return &pb.ServerReadyResponse{Ready: g.s.Ready()}, nil
}

// ModelReady implements the protocol: an unknown model is not ready, which is no error.
func (g *grpcService) ModelReady(_ context.Context, r *pb.ModelReadyRequest) (*pb.ModelReadyResponse, error) {
	m, err := g.s.model(r.GetName(), r.GetVersion())
	return &pb.ModelReadyResponse{Ready: err == nil && g.s.modelReady(m, r.GetVersion())}, nil
}

// ServerMetadata implements the protocol.
func (g *grpcService) ServerMetadata(context.Context, *pb.ServerMetadataRequest) (*pb.ServerMetadataResponse, error) {
	return &pb.ServerMetadataResponse{Name: g.s.config.Name, Version: g.s.config.Version,
		Extensions: g.s.config.extensions()}, nil
}

// ModelMetadata implements the protocol.
func (g *grpcService) ModelMetadata(ctx context.Context, r *pb.ModelMetadataRequest) (*pb.ModelMetadataResponse,
	error) {
	m, err := g.s.usable(r.GetName(), r.GetVersion())
	if err != nil {
		return nil, failure(ctx, err)
	}
	out := &pb.ModelMetadataResponse{
		Name: m.Name, Platform: m.Platform, Inputs: oip.TensorMetadata(m.Inputs),
		Outputs: oip.TensorMetadata(m.Outputs),
	}
	for _, v := range m.allVersions() {
		out.Versions = append(out.Versions, v.Version)
	}
	return out, nil
}

// ModelInfer implements the protocol.
func (g *grpcService) ModelInfer(ctx context.Context, r *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	holds := g.s.memory.Done(r)
	defer holds.Release()
	out, err := g.infer(ctx, r, call{}, holds)
	if err != nil {
		return nil, failure(ctx, err)
	}
	return out, nil
}

// call says how a request over gRPC is answered.
type call struct {
	// queued, if not nil, is called when the request's query has its place among others.
	queued func()
	// partial, if not nil, is called with each answer of a decoupled model, one at a time.
	partial func(*pb.ModelInferResponse)
}

// infer answers a request. holds has the claim of the request's memory, and claims that of the answer. The answer of a
// decoupled model has no outputs: those went to how.partial.
func (g *grpcService) infer(ctx context.Context, r *pb.ModelInferRequest, how call, holds *memory.Claim) (
	*pb.ModelInferResponse, error) {
	if err := holds.By(tenantOf(ctx)); err != nil {
		return nil, err
	}
	m, err := g.s.usable(r.ModelName, r.ModelVersion)
	if err != nil {
		return nil, err
	}
	if m.Decoupled() && how.partial == nil {
		return nil, oip.Errorf(oip.Unsupported, "", "ModelInfer RPC doesn't support models with decoupled transaction "+
			"policy: use ModelStreamInfer")
	}
	inputs, err := oip.DecodeRequest(r, g.s.regions.Reader(g.s.config.MaxRequest, holds))
	if err = namingInputs(m, err); err != nil {
		return nil, err
	}
	params, err := oip.DecodeParams(r.Parameters)
	if err != nil {
		return nil, err
	}
	query, err := newRequest(m, r.ModelVersion, inputs, params, g.s.config.Items)
	if err != nil {
		return nil, err
	}
	wanted, err := oip.DecodeRequested(r)
	if err != nil {
		return nil, err
	}
	if err := g.s.wantOutputs(m, query, wanted); err != nil {
		return nil, err
	}
	query.Queued = how.queued
	r.Inputs, r.RawInputContents = nil, nil // large tensors are freed as soon as no stage needs them
	if m.Decoupled() {
		return g.inferDecoupled(ctx, m, r, query, wanted, how.partial, holds)
	}
	m, answer, err := g.s.infer(ctx, m, query)
	if err != nil {
		return nil, err
	}
	outputs, shared, err := g.s.deliver(m, answer.Outputs, wanted, query.Outputs, holds)
	if err != nil {
		return nil, err
	}
	v, _ := m.Version(answer.Variant)
	out := &pb.ModelInferResponse{ModelName: m.Name, ModelVersion: v.Version, Id: r.Id,
		Parameters: map[string]*pb.InferParameter{
			"variant": oip.String(v.Name), "accuracy": oip.Double(answer.Accuracy),
			"queue_us":   oip.Int(answer.Queue.Microseconds()),
			"batch_size": oip.Int(int64(answer.BatchSize)), "query_id": oip.Int(int64(answer.Query)),
		}}
	if answer.Calibrated {
		out.Parameters["confidence"] = oip.Double(float64(answer.Confidence))
	}
	for _, p := range stageTimings(answer.Stages) {
		switch x := p.Value.(type) {
		case string:
			out.Parameters[p.Name] = oip.String(x)
		case int64:
			out.Parameters[p.Name] = oip.Int(x)
		}
	}
	oip.EncodeOutputs(out, outputs, shared)
	return out, nil
}

// inferRecovered is infer on a goroutine without an interceptor that recovers from a panic.
func (g *grpcService) inferRecovered(ctx context.Context, r *pb.ModelInferRequest, how call,
	holds *memory.Claim) (out *pb.ModelInferResponse, err error) {
	if how.queued != nil {
		defer how.queued() // also after an earlier failure
	}
	defer recoverCall(&g.s.config, "ModelStreamInfer", &err)
	if c := callerOf(ctx); c != nil {
		_, leave, err := g.s.config.Gate.Admit(c)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	return g.infer(ctx, r, how, holds)
}

// ModelConfig implements Triton's extension.
func (g *grpcService) ModelConfig(ctx context.Context, r *pb.ModelConfigRequest) (*pb.ModelConfigResponse, error) {
	m, err := g.s.usable(r.GetName(), r.GetVersion())
	if err != nil {
		return nil, failure(ctx, err)
	}
	return &pb.ModelConfigResponse{Config: m.config()}, nil
}

// ModelStatistics implements Triton's extension. Without a name it covers all models.
func (g *grpcService) ModelStatistics(ctx context.Context, r *pb.ModelStatisticsRequest) (*pb.ModelStatisticsResponse,
	error) {
	list, err := g.s.statistics(r.GetName(), r.GetVersion())
	if err != nil {
		return nil, failure(ctx, err)
	}
	out := &pb.ModelStatisticsResponse{}
	for _, x := range list {
		out.ModelStats = append(out.ModelStats, x.proto())
	}
	return out, nil
}

// RepositoryIndex implements Triton's extension.
func (g *grpcService) RepositoryIndex(_ context.Context, r *pb.RepositoryIndexRequest) (*pb.RepositoryIndexResponse,
	error) {
	out := &pb.RepositoryIndexResponse{}
	for _, x := range g.s.index(r.GetReady()) {
		out.Models = append(out.Models, &pb.RepositoryIndexResponse_ModelIndex{
			Name: x.Name, Version: x.Version, State: x.State, Reason: x.Reason,
		})
	}
	return out, nil
}
