package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/sluice-serving/sluice/internal/api/listen"
	"github.com/sluice-serving/sluice/internal/api/memory"
	"github.com/sluice-serving/sluice/internal/api/regions"
	"github.com/sluice-serving/sluice/internal/api/routes"
)

// Server is a set of bound listeners and their handlers.
type Server struct {
	config   Config
	service  Service
	chain    Infer // of the service: what a query meets once it is decoded
	draining atomic.Bool
	memory   *memory.Budget
	regions  *regions.Registry
	settings *settings
	tracer   *tracer
	records  *records

	public, private       routes.Mux // of the HTTP address, and of the admin address
	handler, adminHandler http.Handler
	calls                 *grpcService
	methods               *grpc.ServiceDesc
	codec                 *boundedCodec

	http, admin   *http.Server
	grpc          *grpc.Server
	health        *health.Server
	httpL, adminL net.Listener
	grpcL         net.Listener
	guards        []*listen.Guard
}

// adminConnections is the limit of the admin address; an address may have half of it.
const adminConnections = 128

// New checks the configuration and binds the addresses, so that port 0 becomes a free one. It answers nothing before
// Serve. The caller closes a server that never serves.
func New(c Config, p Service) (*Server, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	allowUnpackRatio(c.UnpackRatio)
	s := &Server{config: c, service: p, health: health.NewServer(), memory: memory.New(c.Memory, c.Gate.Weights()),
		regions: regions.New(c.SharedMemory), settings: newSettings(c.LogLevel),
		records: &records{audit: c.Audit, access: c.AccessLog, every: uint64(max(c.AccessEvery, 1))}}
	if s.tracer, err = newTracer(c.Traces, s.settings, c.Log); err != nil {
		return nil, err
	}
	s.chain = p.Chain(Links{Tenant: s.ofTenant, Deadline: untilDeadline, Trace: s.traced})
	for _, x := range []struct {
		name, address string
		limit, each   int
		to            *net.Listener
	}{
		{"http", c.HTTP, c.Connections, c.ConnectionsEach, &s.httpL},
		{"grpc", c.GRPC, c.Connections, c.ConnectionsEach, &s.grpcL},
		{"admin", c.Admin, adminConnections, adminConnections / 2, &s.adminL},
	} {
		if !listens(x.address) {
			continue
		}
		l, err := c.Net.Listen(x.address)
		if err != nil {
			s.closeListeners()
			return nil, notListening(x.name, err)
		}
		g := c.guard(x.name, l, x.limit, x.each)
		if x.name == "grpc" {
			g.Connected = c.Connected
		}
		s.guards = append(s.guards, g)
		*x.to = g
	}
	s.build()
	return s, nil
}

// notListening is the error of an address, by its setting, with what to do.
func notListening(name string, err error) error {
	hint := "want HOST:PORT, or off"
	if errors.Is(err, syscall.EADDRINUSE) {
		hint = "another program listens there; port 0 takes a free one"
	}
	return fmt.Errorf("server.%s, or --%s: %w: %s", name, name, err, hint)
}

func (s *Server) closeListeners() {
	for _, l := range []net.Listener{s.httpL, s.grpcL, s.adminL} {
		if l != nil {
			_ = l.Close()
		}
	}
}

func (s *Server) build() {
	c := &s.config
	s.handler, s.adminHandler = s.routes(), s.adminRoutes()
	if s.httpL != nil {
		s.http = c.HTTPServer(s.handler)
		s.http.TLSConfig = c.TLS
	}
	if s.adminL != nil {
		s.admin = c.HTTPServer(s.adminHandler)
		s.admin.TLSConfig = c.AdminTLS
	}
	s.codec = newBoundedCodec(c.Message, s.memory)
	transport := insecure.NewCredentials()
	if c.TLS != nil {
		transport = credentials.NewTLS(c.TLS)
	}
	options := append(grpcOptions(c, s.codec), grpc.Creds(listen.Calming(transport)))
	s.grpc = grpc.NewServer(options...)
	s.calls, s.methods = &grpcService{s: s}, s.guarded(inferenceService())
	s.grpc.RegisterService(s.methods, s.calls)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	if c.Reflection {
		reflection.Register(s.grpc)
	}
	s.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
}

// adminRoutes are the paths of the admin address.
func (s *Server) adminRoutes() http.Handler {
	mux := &s.private
	for path, h := range s.config.AdminHandlers {
		mux.Handle(path, h)
	}
	mux.Handle("/v2/repository/", s.repositoryHandler())
	return s.config.protected(s.adminEntry(mux))
}

func address(l net.Listener) string {
	if l == nil {
		return Off
	}
	return l.Addr().String()
}

// Close releases the addresses of a server that does not serve: one that never did, or whose Serve has returned.
func (s *Server) Close() {
	s.closeListeners()
	if s.grpc != nil {
		s.grpc.Stop() // its workers run from the beginning
	}
	s.tracer.close()
}

// Patterns lists what is served at the HTTP address and at the admin address.
func (s *Server) Patterns() (public, admin []string) {
	return s.public.Patterns(), s.private.Patterns()
}

// Connections returns how many connections were accepted, refused and closed so far, and why.
func (s *Server) Connections() (out []listen.Count) {
	for _, g := range s.guards {
		out = append(out, g.Counts()...)
	}
	return out
}

// HTTPAddr returns the address of the HTTP listener, or Off.
func (s *Server) HTTPAddr() string { return address(s.httpL) }

// GRPCAddr returns the address of the gRPC listener, or Off.
func (s *Server) GRPCAddr() string { return address(s.grpcL) }

// AdminAddr returns the address of the admin listener, or Off.
func (s *Server) AdminAddr() string { return address(s.adminL) }

// Ready reports whether the server takes queries: the service is ready and the server is not stopping.
func (s *Server) Ready() bool { return !s.draining.Load() && s.service.Ready() }

// unready says why the server is not ready.
func (s *Server) unready() string {
	if s.draining.Load() {
		return "the server is stopping"
	}
	return s.service.Unready()
}

func (s *Server) modelReady(m *Model, version string) bool {
	return !s.draining.Load() && s.service.ModelReady(m, version)
}

// Serve answers until ctx ends. Then the server reports not ready in all protocols. It goes on answering for
// Config.NotReady, or until Config.Hurry; then it stops accepting connections and calls, answers the accepted calls
// within DrainTimeout, and returns.
func (s *Server) Serve(ctx context.Context) error {
	defer s.tracer.close()
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	failed, fail := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.watchHealth(watching) })
	serve := func(what func() error) {
		running.Go(func() {
			if err := what(); err != nil && !errors.Is(err, http.ErrServerClosed) &&
				!errors.Is(err, grpc.ErrServerStopped) {
				fail(err)
			}
		})
	}
	if s.http != nil {
		serve(func() error {
			if s.config.TLS != nil {
				return s.http.ServeTLS(s.httpL, "", "")
			}
			return s.http.Serve(s.httpL)
		})
	}
	if s.grpcL != nil {
		serve(func() error { return s.grpc.Serve(s.grpcL) })
	}
	if s.admin != nil {
		serve(func() error {
			if s.config.AdminTLS != nil {
				return s.admin.ServeTLS(s.adminL, "", "")
			}
			return s.admin.Serve(s.adminL)
		})
	}
	<-failed.Done()
	var err error
	if cause := context.Cause(failed); ctx.Err() == nil {
		err = cause
	}
	stopWatching()
	err = errors.Join(err, s.drain())
	running.Wait()
	fail(nil)
	return err
}

// drain reports not ready, waits for load balancers to notice, lets accepted calls finish and closes everything.
func (s *Server) drain() error {
	s.draining.Store(true)
	s.health.Shutdown()
	if s.config.NotReady > 0 {
		s.config.Log.Info("stopping: not ready from now on, still answering; a second signal ends this time",
			"not_ready", s.config.NotReady)
		select {
		case <-time.After(s.config.NotReady):
		case <-s.config.Hurry:
		}
	}
	s.config.Log.Info("draining: finishing what was accepted")
	limit, done := context.WithTimeout(context.Background(), s.config.DrainTimeout)
	defer done()
	var errs [2]error
	var waiting sync.WaitGroup
	if s.http != nil {
		waiting.Go(func() {
			if errs[0] = s.http.Shutdown(limit); errs[0] != nil {
				_ = s.http.Close()
			}
		})
	}
	waiting.Go(func() { errs[1] = DrainGRPC(limit, s.grpc) })
	waiting.Wait()
	s.regions.Unregister("")
	if s.admin != nil { // last, so that metrics can be read until the end
		_ = s.admin.Close()
	}
	return errors.Join(errs[0], errs[1])
}
