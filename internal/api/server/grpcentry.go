package server

import (
	"context"
	"crypto/tls"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/api/listen"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// needOfCall returns what a method of the protocol needs.
func needOfCall(method string) need {
	switch method {
	case "ServerLive", "ServerReady":
		return need{open: true}
	case "ModelInfer":
		return need{roles: access.Infer, query: true}
	case "ModelStreamInfer":
		return need{roles: access.Infer} // its requests count one by one
	case "SystemSharedMemoryRegister", "SystemSharedMemoryUnregister", "CudaSharedMemoryRegister",
		"CudaSharedMemoryUnregister":
		return need{roles: access.Infer, changes: true}
	case "RepositoryModelLoad", "RepositoryModelUnload", "TraceSetting", "LogSettings":
		return need{changes: true}
	}
	return need{roles: access.Look}
}

// first returns the first value of a key of the metadata of a call.
func first(ctx context.Context, key string) string {
	if v := metadata.ValueFromIncomingContext(ctx, key); len(v) > 0 {
		return v[0]
	}
	return ""
}

// TLSOfCall returns the TLS state of the connection of a gRPC call; false without TLS.
func TLSOfCall(ctx context.Context) (tls.ConnectionState, bool) {
	if p, ok := peer.FromContext(ctx); ok {
		if t, ok := listen.Security(p.AuthInfo).(credentials.TLSInfo); ok {
			return t.State, true
		}
	}
	return tls.ConnectionState{}, false
}

// callerOfCall returns who makes a call, if it has the roles.
func (s *Server) callerOfCall(ctx context.Context, roles access.Roles) (*access.Caller, error) {
	shown := access.Shown{Authorization: first(ctx, "authorization"), Key: first(ctx, "x-api-key")}
	switch {
	case s.config.Certificate != nil:
		shown.Certificate = s.config.Certificate(ctx)
	case s.config.TLS != nil:
		if t, ok := TLSOfCall(ctx); ok {
			shown.Certificate = Verified(&t)
		}
	}
	return s.config.Gate.Enter(&shown, roles)
}

// guarded returns a service whose methods let callers in before they read a message.
func (s *Server) guarded(d *grpc.ServiceDesc) *grpc.ServiceDesc {
	out := *d
	out.Methods, out.Streams = slices.Clone(d.Methods), slices.Clone(d.Streams)
	for k := range out.Methods {
		m := out.Methods[k]
		n := needOfCall(m.MethodName)
		if n.open {
			continue
		}
		out.Methods[k].Handler = func(srv any, ctx context.Context, receive func(any) error,
			intercept grpc.UnaryServerInterceptor) (reply any, err error) {
			written := s.records.begin(n.changes)
			if !written.any() { // most calls
				inside, leave, err := s.enterCall(ctx, n)
				if err != nil {
					return nil, failure(ctx, err)
				}
				defer leave()
				return m.Handler(srv, inside, receive, intercept)
			}
			target, changes := "", n.changes
			err = s.recordedCall(ctx, m.MethodName, n, &written, &target, &changes, func(ctx context.Context) error {
				read := receive
				if n.changes {
					read = func(x any) error {
						err := receive(x)
						target, changes = whatChanges(x)
						return err
					}
				}
				reply, err = m.Handler(srv, ctx, read, intercept)
				return err
			})
			if err != nil {
				return nil, err
			}
			return reply, nil
		}
	}
	for k := range out.Streams {
		m := out.Streams[k]
		n := needOfCall(m.StreamName)
		out.Streams[k].Handler = func(srv any, stream grpc.ServerStream) error {
			target, changes, written := "", false, s.records.begin(false)
			run := func(ctx context.Context) error { return m.Handler(srv, callerStream{stream, ctx}) }
			return s.recordedCall(stream.Context(), m.StreamName, n, &written, &target, &changes, run)
		}
	}
	return &out
}

// callerStream is a stream with its caller in its context.
type callerStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s callerStream) Context() context.Context { return s.ctx }

// whatChanges returns the model that a message is about, and whether it changes anything: settings are also asked for.
func whatChanges(x any) (target string, changes bool) {
	switch x := x.(type) {
	case interface{ GetModelName() string }:
		target = x.GetModelName()
	case interface{ GetName() string }:
		target = x.GetName()
	}
	switch x := x.(type) {
	case *pb.TraceSettingRequest:
		return target, len(x.GetSettings()) > 0
	case *pb.LogSettingsRequest:
		return target, len(x.GetSettings()) > 0
	}
	return target, true
}

// enterCall lets a call in: it returns the context with its caller, and what to call at its end.
func (s *Server) enterCall(ctx context.Context, n need) (inside context.Context, leave func(), err error) {
	caller, err := s.callerOfCall(ctx, n.roles)
	if err != nil {
		return ctx, nil, err
	}
	inside = context.WithValue(ctx, callerKey{}, caller)
	conn, away := listen.ConnOfCall(ctx), func() {}
	if conn.Shared() && n.roles&access.Infer != 0 {
		if !conn.Enter(caller.Tenant) {
			return inside, nil, s.config.Gate.Crowds(caller)
		}
		away = func() { conn.Leave(caller.Tenant) }
	}
	if !n.query {
		return inside, away, nil
	}
	quota, leave, err := s.config.Gate.Admit(caller)
	if err != nil {
		away()
	} else if admitted := leave; conn.Shared() {
		leave = func() { admitted(); away() }
	}
	if quota.Limit > 2*quota.Remaining {
		// Headers cost a call much of its time here, so that only those come that say something.
		_ = grpc.SetHeader(ctx, metadata.Pairs(strings.ToLower(quotaLimit), strconv.Itoa(quota.Limit),
			strings.ToLower(quotaRemaining), strconv.Itoa(quota.Remaining),
			strings.ToLower(quotaReset), wholeSeconds(quota.Reset)))
	}
	return inside, leave, err
}

// recordedCall runs a call with its caller in its context, and writes down what has to be. target and changes are read
// at the end.
func (s *Server) recordedCall(ctx context.Context, method string, n need, written *record, target *string,
	changes *bool, run func(context.Context) error) error {
	inside, leave, err := s.enterCall(ctx, n)
	if err == nil {
		err = run(inside)
		leave()
	} else {
		err = failure(ctx, err)
	}
	if written.audits = written.audits && *changes; written.any() {
		written.ID = requestID(first(ctx, "x-request-id"))
		if p, ok := peer.FromContext(ctx); ok {
			written.From = p.Addr.String()
		}
		written.Protocol, written.What, written.Target = "grpc", method, access.Cut(*target)
		written.Result = status.Code(err).String()
		if err != nil {
			written.Why = access.Cut(status.Convert(err).Message())
		}
		s.records.end(written, callerOf(inside), s.config.Gate)
	}
	return err
}
