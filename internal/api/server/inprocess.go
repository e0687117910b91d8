package server

import (
	"context"
	"net"
	"net/http"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/listen"
	"github.com/sluice-serving/sluice/internal/api/oip"
)

// A program that has listeners of its own, such as a front of several servers, hands requests to a server without a
// socket between them: Handler, AdminHandler and Call. Its listeners get the same limits from Config's methods.

// Handler answers the protocol over HTTP, as the server's own address does. The caller bounds headers and the time to
// read a request ([Config.HTTPServer]); it must not call it once Serve has returned.
func (s *Server) Handler() http.Handler { return s.handler }

// AdminHandler answers what the admin address does.
func (s *Server) AdminHandler() http.Handler { return s.adminHandler }

// Call answers a unary call of the protocol, such as ModelInfer, whose message is still encoded. ctx is that of the
// call as the caller's gRPC server got it: its metadata say who calls, and it takes the trailer. The caller frees in
// and what is returned. The error is a gRPC status.
func (s *Server) Call(ctx context.Context, method string, in mem.BufferSlice) (out mem.BufferSlice, err error) {
	at := slices.IndexFunc(s.methods.Methods, func(m grpc.MethodDesc) bool { return m.MethodName == method })
	if at < 0 {
		return nil, status.Errorf(codes.Unimplemented, "unknown method %.100s", method)
	}
	defer recoverCall(&s.config, method, &err)
	receive := func(v any) error {
		err := s.codec.Unmarshal(in, v)
		if err != nil {
			return wireStatus(oip.Errorf(oip.Invalid, "", "the message cannot be read: %v", err))
		}
		return nil
	}
	reply, err := s.methods.Methods[at].Handler(s.calls, ctx, receive, s.intercept)
	if err != nil {
		return nil, err
	}
	return s.codec.Marshal(reply)
}

// intercept runs a call through the interceptors of the configuration, as the server's own address does.
func (s *Server) intercept(ctx context.Context, r any, i *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	for _, around := range slices.Backward(s.config.Intercept) {
		next := handle
		handle = func(ctx context.Context, r any) (any, error) { return around(ctx, r, i, next) }
	}
	return handle(ctx, r)
}

// Filled returns the configuration with its defaults, or an error that says which setting is wrong.
func (c Config) Filled() (Config, error) { return c.withDefaults() }

// Listen binds an address. Its connections are bounded as the configuration says; name is the listener's in
// [listen.Count]. The configuration must be filled.
func (c *Config) Listen(name, address string) (net.Listener, error) {
	l, err := c.Net.Listen(address)
	if err != nil {
		return nil, err
	}
	return c.guard(name, l, c.Connections, c.ConnectionsEach), nil
}

// guard bounds the connections of a listener.
func (c *Config) guard(name string, l net.Listener, limit, each int) *listen.Guard {
	g := listen.NewGuard(name, l, limit, each, c.WriteTimeout)
	if name != "admin" { // nobody's queries wait there
		g.Tenants, g.Calls = c.Gate.Weights(), c.Streams
	}
	return g
}

// HTTPServer returns a server of a handler with the configuration's bounds of size and time.
func (c *Config) HTTPServer(h http.Handler) *http.Server {
	return &http.Server{Handler: listen.Reserved(c.recovered(h), refuseReserved), ConnContext: listen.WithConn,
		ReadHeaderTimeout: c.ReadTimeout, ReadTimeout: c.ReadTimeout, IdleTimeout: c.IdleTimeout,
		MaxHeaderBytes: c.MaxHeader,
		ErrorLog:       debugLogger(c.Log)}
}

// refuseReserved answers on a connection beyond the limits.
func refuseReserved(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	writeError(w, oip.Unavailable.HTTP(), "too many connections are open (server.limits.connections, "+
		"server.limits.connections_per_address): only health and metadata are answered")
}

// Extensions are those of the protocol that servers have.
func Extensions() []string { return slices.Clone(extensions) }
