package server

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/dashboard"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/internal/measure/telemetry"
	"github.com/sluice-serving/sluice/internal/measure/tracing"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// Options are settings of a server that take precedence over its configuration, and its log.
type Options struct {
	// HTTP, GRPC and Admin are the addresses to listen on, HOST:PORT or "off"; port 0 takes a free one. An empty one
	// leaves the configuration's.
	HTTP, GRPC, Admin string
	// Name is the server's name in its metadata; empty leaves the configuration's.
	Name string
	// Strict has the server say that it is not ready while a model cannot be loaded. Else the others serve, and that
	// one says that it is not ready.
	Strict bool
	// SharedMemory is the prefix of the shared memory objects that clients may use; empty leaves the configuration's.
	SharedMemory string
	// ModelControl lets every client load and unload models, as the configuration's server.model_control does.
	ModelControl bool
	// Journal is a file that all inputs and decisions are written to, relative to the sluice.yaml; empty leaves the
	// configuration's.
	Journal string
	// Hurry is closed when a server that stops is to stop answering at once, without server.not_ready. Nil never is.
	Hurry <-chan struct{}
	// Starts is by device type how long supplied machines took to come in an earlier run: what is believed until one
	// comes.
	Starts map[string]time.Duration
	// Certificate is set where the program has a front of its own: it ends TLS for callers as the configuration's
	// server.tls says, hands their requests on, and returns the certificate of a caller over gRPC that it has verified;
	// nil for none. Over HTTP that of the request's TLS state counts. The server's own addresses have no TLS then.
	Certificate func(context.Context) *x509.Certificate
	// WhatIf answers the page's questions "what if"; nil has this process do it, at a low priority.
	WhatIf WhatIfAnswerer
	// Log is the server's log. Nil discards it. Level and format are the caller's choice; the telemetry section of the
	// configuration has the author's.
	Log *slog.Logger
	// LogLevel is the level of Log, which clients that may load models may change; nil for one that is fixed.
	LogLevel *slog.LevelVar

	Observe host.Observer // of every step; nil for none

	over func(serving.WorkerID, dataplane.Backend) dataplane.Backend // has workers fail in tests; nil for none
}

// Server is a running configuration: backends, data plane, stores and front ends. Its listeners are bound from the
// start; it answers while [Server.Serve] runs. Its methods are safe for concurrent use.
type Server struct {
	planned    *host.Planned
	log        *slog.Logger
	drain      time.Duration // how long accepted queries may take to finish
	steps      *steps.Log
	telemetry  *telemetry.Telemetry
	tracer     *tracing.Tracer // nil without traces
	plane      *dataplane.Plane
	run        *machines.Backends
	service    *service
	refiner    *refiner
	functions  *functionHost // nil without a store
	front      *server.Server
	board      *board.Board
	objectives *objectives
	dashboard  *dashboard.Dashboard
	history    *history // nil without a file

	journal *host.JournalFile // nil without one

	loadErrors sync.Map // by variant's name: why its latest load that failed did

	releases []func() error // in the order of opening; called in the reverse order
	once     sync.Once
	released error
}

// New makes the first plan and starts a server. Functions in the configuration's store are restored first, and
// planned for. ctx bounds the start, not the server's life. The caller must call Serve or Close.
func New(ctx context.Context, p *host.Profiled, o Options) (*Server, error) {
	if p.File().Store != "" {
		return newServer(ctx, p, nil, o)
	}
	planned, err := p.Plan(ctx)
	if err != nil {
		return nil, err
	}
	return newServer(ctx, p, planned, o)
}

// NewPlanned starts a server as [New] does, with this first plan and planner. If the configuration has a
// store of functions, it makes a new first plan, since this one does not have them.
func NewPlanned(ctx context.Context, p *host.Planned, o Options) (*Server, error) {
	if p.File().Store != "" {
		return newServer(ctx, p.Profiled, nil, o)
	}
	return newServer(ctx, p.Profiled, p, o)
}

// newServer opens everything and binds the addresses. planned is nil where functions are to be planned for.
func newServer(ctx context.Context, p *host.Profiled, planned *host.Planned, o Options) (_ *Server, err error) {
	s := &Server{planned: planned, log: o.Log, drain: time.Duration(p.File().Server.DrainTimeout)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for _, x := range p.Tables().Warnings {
		s.log.Warn(x)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	if len(p.Unmeasured()) > 0 {
		p.Announce("the models are measured while the server is idle")
	}
	run, err := p.Fleet().Backends(s.log)
	if err != nil {
		return nil, err
	}
	s.onRelease(func() error { run.Close(); return nil })
	if o.over != nil {
		run.Over(o.over)
	}
	if planned == nil {
		if err := s.restoreFunctions(ctx, p, run); err != nil {
			return nil, err
		}
	}
	s.logPolicies()
	if err := s.openTracer(ctx); err != nil {
		return nil, err
	}
	if err := s.startPlane(ctx, run, o); err != nil {
		return nil, err
	}
	if err := s.listen(o); err != nil {
		return nil, err
	}
	machines.LogLibrary(s.log)
	s.log.Info("serving", "http", s.HTTPAddr(), "grpc", s.GRPCAddr(), "admin", s.AdminAddr(),
		"system", p.System().Name, "router", p.System().Router, "batcher", p.System().Batcher)
	return s, nil
}

// logPolicies logs the policies that planners make from now on.
func (s *Server) logPolicies() {
	kept := s.planned.Opened
	kept.OnPolicy(func(rate float64, err error) {
		s.log.Info("a policy was made", "rate", rate)
		if err != nil {
			s.log.Warn("policies are not kept", "error", err)
		}
	})
	s.onRelease(func() error { kept.OnPolicy(nil); return nil })
}

// onRelease adds a function that is called when the server is released, before those added earlier.
func (s *Server) onRelease(f func() error) { s.releases = append(s.releases, f) }

// release closes everything once. It always returns the same error.
func (s *Server) release() error {
	s.once.Do(func() {
		var errs []error
		for _, f := range slices.Backward(s.releases) {
			errs = append(errs, f())
		}
		s.released = errors.Join(errs...)
	})
	return s.released
}

// Serve answers queries until ctx ends. Then it turns not ready, still answers for the configuration's
// server.not_ready, finishes accepted queries within its server.drain_timeout, and releases everything. It must be
// called at most once.
func (s *Server) Serve(ctx context.Context) error {
	over := make(chan struct{})
	refining, stopRefining := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRefining()
	var helpers sync.WaitGroup
	help := func(what string, f func()) { helpers.Go(func() { s.keep(refining, what, f) }) }
	if f := s.functions; f != nil {
		help("writer of idle times", func() { f.saveIdleTimes(over) })
		defer context.AfterFunc(ctx, f.manager.Close)() // requests wait for deployments, and the drain for requests
	}
	help("measurement in the background", func() {
		functions.WhenIdle(refining, s.service.isIdle, s.refinement)
	})
	help("learning from queries", func() { s.refiner.learn(refining) })
	if c, every := s.service.catalog, pollEvery(s.planned.Opened); c != nil {
		help("watch of the repository", func() {
			if c.begin(refining); every > 0 {
				c.watch(refining, every)
			}
		})
	}
	if s.service.chains != nil {
		help("chains of functions", func() { s.service.chains.begin(refining) })
	}
	if shadow := s.service.shadow; shadow != nil {
		help("comparison of answers", func() { shadow.run(refining) })
	}
	help("dashboard", func() { s.dashboard.Run(refining) })
	help("watch of objectives", func() { s.objectives.run(refining) })
	if s.history != nil {
		help("history", func() { s.history.keep(refining) })
	}
	err := s.front.Serve(ctx)
	limit, done := context.WithTimeout(context.WithoutCancel(ctx), max(s.drain, time.Second))
	defer done()
	if drained := s.plane.Drain(limit); drained != nil {
		err = errors.Join(err, fmt.Errorf("queries were still running after %v: %w", s.drain, drained))
	}
	stopRefining()
	if s.functions != nil {
		s.functions.manager.Close()
	}
	close(over)
	helpers.Wait()
	s.refiner.close()
	if s.functions != nil {
		s.functions.save()
	}
	s.closePlane()
	s.log.Info("stopped")
	return errors.Join(err, s.release())
}

// helperPause is between a panic of what runs beside the queries and its next beginning.
const helperPause = time.Second

// keep runs f until it returns. After a panic, which is told, it runs f again.
func (s *Server) keep(ctx context.Context, what string, f func()) {
	for {
		err := dataplane.Safely(what, func() error { f(); return nil })
		if err == nil {
			return
		}
		s.trouble(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(helperPause):
		}
	}
}

// Close releases a server whose Serve was not called, or has returned. It must not be called while Serve runs.
func (s *Server) Close() error {
	s.front.Close()
	return s.release()
}

// HTTPAddr is the address of the HTTP listener, or "off".
func (s *Server) HTTPAddr() string { return s.front.HTTPAddr() }

// GRPCAddr is the address of the gRPC listener, or "off".
func (s *Server) GRPCAddr() string { return s.front.GRPCAddr() }

// AdminAddr is the address of the admin listener, or "off".
func (s *Server) AdminAddr() string { return s.front.AdminAddr() }

// Ready reports whether the server takes queries: every app of the configuration has had a ready instance at every
// stage, and Serve's context has not ended.
func (s *Server) Ready() bool { return s.front.Ready() }

// WaitReady returns when the server is ready, or with ctx's error.
func (s *Server) WaitReady(ctx context.Context) error { return waitFor(ctx, s.Ready) }

// Usage is the use of the server's machines until now. It is zero once the server is closed.
func (s *Server) Usage() (out report.Usage) {
	s.plane.Inspect(func(e *engine.Engine) { out = e.Usage(s.plane.Now()) })
	return out
}
