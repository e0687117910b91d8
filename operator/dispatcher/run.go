package dispatcher

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/operator/dispatcher/cells"
	"github.com/sluice-serving/sluice/operator/dispatcher/front"
	"github.com/sluice-serving/sluice/operator/dispatcher/peertls"
	"github.com/sluice-serving/sluice/operator/dispatcher/runner"
	"github.com/sluice-serving/sluice/operator/kinds"
)

// Dispatcher is a replica that listens. Run has it work.
type Dispatcher struct {
	o       Options
	me      cells.Holder
	replica *peertls.Replica // nil without TLS
	api     client.Client
	table   *front.Table
	runs    *runner.Manager
	elector *cells.Elector
	configs *configurations
	front   *front.Front
	metrics *prometheus.Registry
	admin   *http.Server
	adminL  net.Listener
}

// New binds the addresses and connects to nothing yet.
func New(o Options) (*Dispatcher, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.StatusEvery <= 0 {
		o.StatusEvery = 5 * time.Second
	}
	scheme, err := kinds.Scheme()
	if err != nil {
		return nil, err
	}
	o.Config = rest.CopyConfig(o.Config)
	o.Config.QPS, o.Config.Burst = 100, 200 // renewals must not wait behind statuses
	api, err := client.New(o.Config, client.Options{Scheme: scheme, Mapper: kinds.Mapper()})
	if err != nil {
		return nil, fmt.Errorf("the API server's configuration: %w", err)
	}
	d := &Dispatcher{o: o, api: api, metrics: prometheus.NewRegistry()}
	d.metrics.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	d.me.Identity = d.o.identity()
	d.table = front.NewTable(d.me.Identity)
	replica, clients, err := d.secured()
	if err != nil {
		return nil, err
	}
	d.runs = runner.New(runner.Options{Store: o.Store, Supply: o.Supply, Before: d.before, Log: o.Log, Drain: o.Drain,
		Net:         o.Net,
		Changed:     func(int) { d.table.Touch(); d.elector.Poke() },
		Certificate: func(ctx context.Context) *x509.Certificate { return d.front.Certificate(ctx) }})
	d.front, err = front.New(front.Config{
		Server: server.Config{HTTP: o.HTTP, GRPC: o.GRPC, Net: o.Net, TLS: clients, DrainTimeout: o.Drain, Log: o.Log,
			Version: host.Version()},
		Replica: replica, Table: d.table, Runs: d.runs, Hold: o.Hold, Waiting: o.Waiting,
		Metrics: front.NewMetrics(d.metrics),
		Reached: func() time.Time { return d.elector.Reached() }, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	d.me.HTTP, d.me.GRPC = at(o.Address, d.front.HTTPAddr()), at(o.Address, d.front.GRPCAddr())
	d.elector = cells.New(cells.Options{Client: api, Namespace: o.Namespace, Fleet: o.Fleet, Me: d.me, Owner: o.Owner,
		Duration: o.Lease, Renew: o.Renew, Server: d.runs, Changed: d.table.SetHolders, CutOff: d.cutOff, Log: o.Log})
	d.configs = &configurations{o: &d.o, table: d.table, runs: d.runs, elector: d.elector,
		owners: make(map[int]ownerReference), cells: make(map[int]front.Cell)}
	if err := d.openAdmin(); err != nil {
		d.front.Close()
		return nil, err
	}
	return d, nil
}

// at is an address with the port of a listener.
func at(address, listener string) string {
	_, port, err := net.SplitHostPort(listener)
	if err != nil {
		return listener
	}
	return net.JoinHostPort(address, port)
}

// HTTPAddr is the address of the HTTP listener.
func (d *Dispatcher) HTTPAddr() string { return d.front.HTTPAddr() }

// GRPCAddr is the address of the gRPC listener.
func (d *Dispatcher) GRPCAddr() string { return d.front.GRPCAddr() }

// AdminAddr is the address of metrics and health.
func (d *Dispatcher) AdminAddr() string { return d.adminL.Addr().String() }

// Held are the cells that this replica holds.
func (d *Dispatcher) Held() []int { return d.elector.Held() }

// Run works until ctx ends. Then it hands its cells over, answers what it has accepted, and returns.
func (d *Dispatcher) Run(ctx context.Context) error {
	failed, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	defer unwatch()
	var helpers sync.WaitGroup
	helpers.Go(func() {
		if err := d.admin.Serve(d.adminL); err != nil && !errors.Is(err, http.ErrServerClosed) {
			fail(err)
		}
	})
	from, err := newCache(&d.o, d.api)
	if err != nil {
		return err
	}
	synced, err := handOn(watching, from, d.elector, d.configs, d.replica)
	if err != nil {
		return err
	}
	helpers.Go(func() {
		if err := from.Start(watching); err != nil {
			fail(err)
		}
	})
	helpers.Go(func() { d.awaitSync(watching, synced) })
	answering, stopAnswering := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAnswering()
	answered := make(chan error, 1)
	go func() {
		err := d.front.Serve(answering)
		if err != nil {
			fail(err)
		}
		answered <- err
	}()
	status, stopStatus := context.WithCancel(context.WithoutCancel(ctx))
	helpers.Go(func() { d.report(status) })
	d.o.Log.Info("dispatching", "fleet", d.o.Fleet, "replica", d.me.Identity, "http", d.HTTPAddr(),
		"grpc", d.GRPCAddr(), "admin", d.AdminAddr())

	kept := make(chan struct{})
	go func() { defer close(kept); d.elector.Run(failed) }()
	<-failed.Done()
	began := time.Now()
	d.front.Leave()
	d.o.Log.Info("stopping: handing over what is held, still answering")
	<-kept
	stopStatus()
	time.Sleep(max(0, d.o.NotReady-time.Since(began))) // load balancers notice meanwhile
	stopAnswering()
	err = <-answered
	d.runs.Close()
	unwatch()
	_ = d.admin.Close()
	helpers.Wait()
	d.o.Log.Info("stopped")
	if ctx.Err() == nil {
		err = errors.Join(context.Cause(failed), err)
	}
	return err
}

// awaitSync says that all configurations are known once they are.
func (d *Dispatcher) awaitSync(ctx context.Context, synced func() bool) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !synced() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	d.configs.synced()
}

// cutOff asks other replicas whether one of them has reached the API server just now.
func (d *Dispatcher) cutOff(ctx context.Context, others []cells.Holder) bool {
	answers := make(chan bool, len(others))
	for _, o := range others {
		go func() {
			ago, err := d.front.AskReached(ctx, o)
			answers <- err == nil && ago < d.o.Renew+d.o.Renew/2
		}()
	}
	for range others {
		if <-answers {
			return true
		}
	}
	return false
}
