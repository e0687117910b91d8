package front

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/operator/dispatcher/peertls"
	"github.com/sluice-serving/sluice/operator/dispatcher/runner"
)

// Runs are the runs of this process.
type Runs interface {
	// Use returns the run that answers the queries of a cell, or nil. Its Done is called when the query has ended.
	Use(cell int) *runner.Run
}

// Config says where and how a fleet is answered.
type Config struct {
	Server server.Config // addresses, bounds of size and time, TLS
	// Replica is this process among the others of the fleet. With TLS alone.
	Replica *peertls.Replica
	Table   *Table
	Runs    Runs
	// Hold is how long a query whose cell nobody serves waits; default 10 s. Waiting is how many may wait at once;
	// default 4096.
	Hold    time.Duration
	Waiting int
	// Metrics counts; nil for metrics that nobody reads.
	Metrics *Metrics
	// Reached is when this process last reached the API server.
	Reached func() time.Time
	Log     *slog.Logger
}

// Front answers for a fleet.
type Front struct {
	c       Config
	table   *Table
	metrics *Metrics
	waiting atomic.Int64
	leaving atomic.Bool // says that it is not ready
	ending  atomic.Bool // closes connections after their next answer
	handed  handed      // certificates of callers, for runs here
	parsed  certificates

	handler      http.Handler
	proxy        *httputil.ReverseProxy
	http         *http.Server
	grpc         *grpc.Server
	health       *health.Server
	httpL, grpcL net.Listener
	peers        *peers
	transport    *http.Transport
}

// New binds the addresses. The caller closes a front that never serves.
func New(c Config) (*Front, error) {
	if c.Hold <= 0 {
		c.Hold = 10 * time.Second
	}
	if c.Waiting <= 0 {
		c.Waiting = 4096
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics(nil)
	}
	if c.Reached == nil {
		c.Reached = func() time.Time { return time.Time{} }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	var err error
	if c.Server, err = c.Server.Filled(); err != nil {
		return nil, err
	}
	if (c.Server.TLS != nil) != (c.Replica != nil) {
		return nil, errors.New("front: TLS needs a Replica, and the other way round")
	}
	f := &Front{c: c, table: c.Table, metrics: c.Metrics, health: health.NewServer()}
	f.peers, f.transport = newPeers(f), newTransport(c.Server.Net.Dialer, f.connect)
	f.handler = f.routes()
	f.http = f.c.Server.HTTPServer(f.handler)
	options := append(f.c.Server.GRPCLimits(), grpc.ForceServerCodecV2(rawCodec{protoCodec()}),
		grpc.UnknownServiceHandler(f.call))
	if f.secure() {
		f.http.TLSConfig = c.Replica.Server(c.Server.TLS)
		options = append(options, grpc.Creds(credentials.NewTLS(c.Replica.Server(c.Server.TLS))))
	}
	f.grpc = grpc.NewServer(options...)
	healthpb.RegisterHealthServer(f.grpc, fleetHealth{f.health, f})
	if f.httpL, err = f.c.Server.Listen("http", c.Server.HTTP); err != nil {
		return nil, err
	}
	if f.grpcL, err = f.c.Server.Listen("grpc", c.Server.GRPC); err != nil {
		_ = f.httpL.Close()
		return nil, err
	}
	return f, nil
}

// HTTPAddr is the address of the HTTP listener.
func (f *Front) HTTPAddr() string { return f.httpL.Addr().String() }

// GRPCAddr is the address of the gRPC listener.
func (f *Front) GRPCAddr() string { return f.grpcL.Addr().String() }

// Ready reports whether queries are to be sent here: the cells are known, and the front is not ending.
func (f *Front) Ready() bool { return !f.leaving.Load() && f.table.Known() }

// Leave has the front say from now on that it is not ready. It goes on answering.
func (f *Front) Leave() { f.leaving.Store(true) }

// Close releases what a front has that does not serve.
func (f *Front) Close() {
	_ = f.httpL.Close()
	_ = f.grpcL.Close()
	f.peers.close()
	f.transport.CloseIdleConnections()
}

// closing is how long connections are closed one by one, each after an answer, before those that are idle are.
const closing = time.Second

// Serve answers until ctx ends; then it answers what it has, for as long as Config.Server.DrainTimeout, and returns.
func (f *Front) Serve(ctx context.Context) error {
	failed, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var running sync.WaitGroup
	serve := func(what func() error) {
		running.Go(func() {
			if err := what(); err != nil && !errors.Is(err, http.ErrServerClosed) &&
				!errors.Is(err, grpc.ErrServerStopped) {
				fail(err)
			}
		})
	}
	watching, unwatch := context.WithCancel(context.Background())
	running.Go(func() { f.watchHealth(watching) })
	serve(func() error {
		if f.secure() {
			return f.http.ServeTLS(f.httpL, "", "")
		}
		return f.http.Serve(f.httpL)
	})
	serve(func() error { return f.grpc.Serve(f.grpcL) })
	<-failed.Done()
	var err error
	if ctx.Err() == nil {
		err = context.Cause(failed)
	}
	unwatch()
	err = errors.Join(err, f.drain())
	running.Wait()
	f.peers.close()
	f.transport.CloseIdleConnections()
	return err
}

// drain answers what was accepted. Connections are told first to close after an answer: a client that sends a query at
// the moment in which its idle connection is closed cannot tell whether it was read.
func (f *Front) drain() error {
	f.leaving.Store(true)
	f.ending.Store(true)
	f.health.Shutdown()
	limit, done := context.WithTimeout(context.Background(), f.c.Server.DrainTimeout)
	defer done()
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() {
		select {
		case <-time.After(closing):
		case <-limit.Done():
		}
		if errs[0] = f.http.Shutdown(limit); errs[0] != nil {
			_ = f.http.Close()
		}
	})
	both.Go(func() { errs[1] = server.DrainGRPC(limit, f.grpc) })
	both.Wait()
	return errors.Join(errs[:]...)
}

// ready reports whether the fleet takes queries: this front is not ending, and every cell is held.
func (f *Front) ready() bool { return f.Ready() && f.table.Complete() }
