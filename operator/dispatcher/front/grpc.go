package front

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
)

// Keys of metadata between the pods of a fleet; those of HTTP in small letters.
var (
	keyPassed    = strings.ToLower(headerPassed)
	keyElsewhere = strings.ToLower(headerElsewhere)
	// keyCertificate is the certificate of a call's caller.
	keyCertificate = strings.ToLower(headerCertificate)
	// keyAnswered is on errors that a run gave, which are no broken connections.
	keyAnswered = "sluice-answered"
)

// serviceName is the protocol's service.
const serviceName = "/inference.GRPCInferenceService/"

// call answers every call but those about health.
func (f *Front) call(_ any, stream grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(stream)
	method, ok := strings.CutPrefix(full, serviceName)
	if !ok {
		return status.Errorf(codes.Unimplemented, "unknown service of %.200s", full)
	}
	ctx, passed, err := f.originOf(stream.Context())
	if err != nil {
		return err
	}
	if method == "ModelStreamInfer" {
		return f.stream(ctx, stream, passed)
	}
	var in frame
	if err := stream.RecvMsg(&in); err != nil {
		return err
	}
	defer in.free()
	out, err := f.unary(ctx, method, &in, passed)
	if err != nil {
		return err
	}
	defer out.free()
	return stream.SendMsg(out)
}

// unary answers a call with one message each way. passed says that another pod has passed it on.
func (f *Front) unary(ctx context.Context, method string, in *frame, passed bool) (*frame, error) {
	field := fieldModel
	switch method {
	case "ServerLive":
		return encode(&pb.ServerLiveResponse{Live: true})
	case "ServerReady":
		return encode(&pb.ServerReadyResponse{Ready: f.ready()})
	case "ServerMetadata":
		return encode(&pb.ServerMetadataResponse{Name: f.c.Server.Name, Version: f.c.Server.Version,
			Extensions: server.Extensions()})
	case "RepositoryIndex":
		return f.grpcIndex(ctx, in)
	case "ModelStatistics":
		if textField(in.data, fieldModel) == "" {
			return f.grpcStats(ctx)
		}
	case "RepositoryModelLoad", "RepositoryModelUnload":
		field = fieldRepositoryModel
	case "ModelInfer", "ModelReady", "ModelMetadata", "ModelConfig":
	default:
		return nil, status.Errorf(codes.Unimplemented, "%.100s is of one server, not of a fleet", method)
	}
	model := textField(in.data, field)
	t, err := f.resolve(ctx, model, passed, "")
	until := time.Time{}
	for err == nil {
		if t.run != nil {
			defer t.done()
			f.metrics.local(t.cell, "grpc", passed)
			out, err := t.run.Call(ctx, method, in.data)
			if err != nil {
				if passed {
					_ = grpc.SetTrailer(ctx, metadata.Pairs(keyAnswered, "1"))
				}
				return nil, err
			}
			return &frame{out}, nil
		}
		if until.IsZero() {
			until = time.Now().Add(f.c.Hold)
		}
		out, again, err := f.pass(ctx, method, t, in)
		if !again || time.Now().After(until) {
			return out, err
		}
		if t, err = f.resolve(ctx, model, false, t.holder.Identity); err != nil {
			return nil, f.status(ctx, method, model, err)
		}
	}
	return nil, f.status(ctx, method, model, err)
}

// pass has another pod answer a call. again says that the pod cannot have begun it.
func (f *Front) pass(ctx context.Context, method string, t target, in *frame) (out *frame, again bool, err error) {
	f.metrics.passed(t.cell, "grpc")
	conn, err := f.peers.conn(t.holder.GRPC)
	if err != nil {
		return nil, false, status.Error(codes.Internal, err.Error())
	}
	var header, trailer metadata.MD
	var to peer.Peer
	out = &frame{}
	err = conn.Invoke(passedOn(ctx), serviceName+method, in, out, grpc.Header(&header), grpc.Trailer(&trailer),
		grpc.Peer(&to))
	if status.Code(err) == codes.Unavailable && ctx.Err() == nil {
		switch {
		case len(trailer.Get(keyElsewhere)) > 0, to.Addr == nil:
			return nil, true, err
		case len(trailer.Get(keyAnswered)) == 0: // no pod said so: the connection broke
			f.metrics.failed("lost")
			f.c.Log.Warn("a query was lost with the pod that had it", "cell", t.cell, "pod", t.holder.Identity,
				"error", err)
			_ = grpc.SetTrailer(ctx, metadata.Pairs("retry-after-ms", retryAfterMS))
			return nil, false, status.Errorf(codes.Unavailable, "the dispatcher of the model was lost before it "+
				"answered: try again (%v)", status.Convert(err).Message())
		}
	}
	if len(header) > 0 {
		_ = grpc.SetHeader(ctx, own(header))
	}
	if len(trailer) > 0 {
		_ = grpc.SetTrailer(ctx, own(trailer))
	}
	return out, false, err
}

var retryAfterMS = strconv.FormatInt(retryAfter.Milliseconds(), 10)

// passedOn is the context of a call to another pod: the client's metadata and certificate, and that it was passed on.
func passedOn(ctx context.Context) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	md = own(md)
	md.Set(keyPassed, "1")
	if c := certificateOf(ctx); c != nil {
		md.Set(keyCertificate, encodeCertificate(c))
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// own are the metadata that are not those of the connection they came over.
func own(md metadata.MD) metadata.MD {
	out := make(metadata.MD, len(md)+1)
	for key, values := range md {
		if strings.HasPrefix(key, ":") || strings.HasPrefix(key, "grpc-") {
			continue
		}
		switch key {
		case "content-type", "user-agent", "te", "connection", "host", keyPassed, keyElsewhere,
			keyAnswered, keyCertificate, keyHanded:
			continue
		}
		out[key] = values
	}
	return out
}

// status is the gRPC status of a query that went nowhere.
func (f *Front) status(ctx context.Context, method, model string, err error) error {
	var none *unavailable
	switch {
	case errors.Is(err, errNotFound) && method == "ModelReady":
		return status.Errorf(codes.NotFound, "there is no model %q", cut(model))
	case errors.Is(err, errNotFound):
		return status.Errorf(codes.NotFound, "there is no model %q", cut(model))
	case errors.As(err, &none):
		f.metrics.failed("unavailable")
		md := metadata.Pairs("retry-after-ms", retryAfterMS)
		if none.here {
			md.Set(keyElsewhere, "1")
		}
		_ = grpc.SetTrailer(ctx, md)
		return status.Error(codes.Unavailable, none.Error())
	case ctx.Err() != nil:
		f.metrics.failed("gone")
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Error(codes.Internal, err.Error())
}

// encode makes a frame of a message.
func encode(m proto.Message) (*frame, error) {
	b, err := proto.Marshal(m)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &frame{mem.BufferSlice{mem.SliceBuffer(b)}}, nil
}

// shownByCall returns what a call shows of its caller; its context is one of originOf.
func shownByCall(ctx context.Context) shown {
	out := shown{make(http.Header), certificateOf(ctx)}
	for _, key := range []string{"authorization", "x-api-key"} {
		for _, x := range metadata.ValueFromIncomingContext(ctx, key) {
			out.header.Add(key, x)
		}
	}
	return out
}

// grpcIndex is the repository index over gRPC.
func (f *Front) grpcIndex(ctx context.Context, in *frame) (*frame, error) {
	var ask pb.RepositoryIndexRequest
	if err := proto.Unmarshal(in.data.Materialize(), &ask); err != nil {
		return nil, status.Error(codes.InvalidArgument, "the message cannot be read: "+err.Error())
	}
	body, err := json.Marshal(map[string]bool{"ready": ask.GetReady()})
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	list, err := f.index(ctx, body, shownByCall(ctx))
	if err != nil {
		return nil, refusedCall(err, codes.InvalidArgument)
	}
	out := &pb.RepositoryIndexResponse{}
	for _, x := range list {
		m := &pb.RepositoryIndexResponse_ModelIndex{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(x, m); err == nil {
			out.Models = append(out.Models, m)
		}
	}
	return encode(out)
}

// grpcStats are the statistics of all models over gRPC.
func (f *Front) grpcStats(ctx context.Context) (*frame, error) {
	list, err := f.stats(ctx, shownByCall(ctx))
	if err != nil {
		return nil, refusedCall(err, codes.Internal)
	}
	out := &pb.ModelStatisticsResponse{}
	for _, x := range list {
		m := &pb.ModelStatistics{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(x, m); err == nil {
			out.ModelStats = append(out.ModelStats, m)
		}
	}
	return encode(out)
}
