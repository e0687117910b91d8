package sluice

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/sluice-serving/sluice/internal/host/measuring"
	"github.com/sluice-serving/sluice/internal/host/server"
)

// ServerOptions take precedence over the configuration's settings.
type ServerOptions struct {
	// HTTP, GRPC and Admin are addresses to listen on, HOST:PORT or "off"; port 0 takes a free one. "" leaves the
	// configuration's.
	HTTP, GRPC, Admin string
	// Log is the server's log. Nil discards it.
	Log *slog.Logger
}

// Server answers queries over the Open Inference Protocol.
type Server struct{ server *server.Server }

// NewServer binds the addresses, starts backends and begins to load models. Models without a profile are looked at, and
// measured while the server is idle. Call Serve next, or Close.
func (c *Configuration) NewServer(ctx context.Context, o ServerOptions) (*Server, error) {
	profiled, err := measuring.EnsureProfile(ctx, c.opened, c.profiles...)
	if err != nil {
		return nil, err
	}
	s, err := server.New(ctx, profiled, server.Options{HTTP: o.HTTP, GRPC: o.GRPC, Admin: o.Admin, Log: o.Log})
	if err != nil {
		return nil, err
	}
	return &Server{s}, nil
}

// Serve answers queries until ctx ends. Then it turns not ready, finishes what it has accepted within the
// configuration's server.drain_timeout, and releases everything. It is called at most once.
func (s *Server) Serve(ctx context.Context) error { return s.server.Serve(ctx) }

// Close releases everything at once. It is for servers that do not Serve.
func (s *Server) Close() error { return s.server.Close() }

// WaitReady returns when the server is ready to answer, or with ctx's error. The server must Serve meanwhile.
func (s *Server) WaitReady(ctx context.Context) error { return s.server.WaitReady(ctx) }

// Ready reports whether every app can be served.
func (s *Server) Ready() bool { return s.server.Ready() }

// HTTPAddr is the address of the HTTP listener, or "off".
func (s *Server) HTTPAddr() string { return s.server.HTTPAddr() }

// GRPCAddr is the address of the gRPC listener, or "off".
func (s *Server) GRPCAddr() string { return s.server.GRPCAddr() }

// AdminAddr is the address of the admin listener, or "off".
func (s *Server) AdminAddr() string { return s.server.AdminAddr() }

// Handler answers what the HTTP address answers, for a program with a listener of its own.
func (s *Server) Handler() http.Handler { return s.server.Handler() }
