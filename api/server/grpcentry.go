package server

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/api/access"
	"github.com/sluice-serving/sluice/api/oip/pb"
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
func first(md metadata.MD, key string) string {
	if v := md[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// shownByCall returns what a call shows of its caller.
func shownByCall(ctx context.Context, md metadata.MD) access.Shown {
	shown := access.Shown{Authorization: first(md, "authorization"), Key: first(md, "x-api-key")}
	if p, ok := peer.FromContext(ctx); ok {
		if t, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			shown.Certificate = verified(t.State.VerifiedChains)
		}
	}
	return shown
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
			target, changes := "", n.changes
			err = s.enteredCall(ctx, m.MethodName, n, &target, &changes, func(ctx context.Context) error {
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
			target, changes := "", false
			return s.enteredCall(stream.Context(), m.StreamName, n, &target, &changes, func(ctx context.Context) error {
				return m.Handler(srv, callerStream{stream, ctx})
			})
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

// enteredCall runs a call with its caller in its context, and writes down what has to be. target and changes are read
// at the end.
func (s *Server) enteredCall(ctx context.Context, method string, n need, target *string, changes *bool,
	run func(context.Context) error) error {
	md, _ := metadata.FromIncomingContext(ctx)
	shown := shownByCall(ctx, md)
	caller, err := s.config.Gate.Enter(&shown, n.roles)
	written := s.records.begin(n.changes)
	if err == nil {
		inside := context.WithValue(ctx, callerKey{}, caller)
		if n.query {
			err = s.admitted(inside, caller, run)
		} else {
			err = run(inside)
		}
	} else {
		err = failure(ctx, err)
	}
	if written.audits = written.audits && *changes; written.any() {
		written.ID = requestID(first(md, "x-request-id"))
		if p, ok := peer.FromContext(ctx); ok {
			written.From = p.Addr.String()
		}
		written.Protocol, written.What, written.Target = "grpc", method, access.Cut(*target)
		written.Result = status.Code(err).String()
		if err != nil {
			written.Why = access.Cut(status.Convert(err).Message())
		}
		s.records.end(&written, caller, s.config.Gate)
	}
	return err
}

// admitted runs a query within its tenant's limits, which the header reports.
func (s *Server) admitted(ctx context.Context, caller *access.Caller, run func(context.Context) error) error {
	quota, leave, err := s.config.Gate.Admit(caller)
	if quota.Limit > 0 {
		_ = grpc.SetHeader(ctx, metadata.Pairs(strings.ToLower(quotaLimit), strconv.Itoa(quota.Limit),
			strings.ToLower(quotaRemaining), strconv.Itoa(quota.Remaining),
			strings.ToLower(quotaReset), wholeSeconds(quota.Reset)))
	}
	if err != nil {
		return failure(ctx, err)
	}
	defer leave()
	return run(ctx)
}
