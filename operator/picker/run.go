package picker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The health services of the protocol.
const (
	healthLive  = "liveness"
	healthReady = "readiness"
)

// healthProcess is the service of external processing itself.
var healthProcess = extproc.ExternalProcessor_ServiceDesc.ServiceName

// Bounds of a gateway's connections.
const (
	maxMessage = 4 << 20
	maxStreams = 16384
	stopTime   = 15 * time.Second
	window     = 1 << 20 // bytes
	// streamWorkers answer streams one after another, with stacks that have grown already; beyond them a stream has a
	// goroutine of its own.
	streamWorkers = 512
)

// Tune has a process that does nothing but pick collect its garbage less often: what is alive is a few megabytes. A
// setting of the environment counts more.
func Tune() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// gcPercent lets garbage grow to this share of what is alive.
const gcPercent = 1000

// Picker serves external processing and health.
type Picker struct {
	o        Options
	server   *Server
	health   *health.Server
	follower *Follower
	process  *grpc.Server
	probes   *grpc.Server
	listens  [2]net.Listener
}

// New binds the picker's addresses.
func New(o Options) (*Picker, error) {
	switch {
	case o.Config == nil:
		return nil, errors.New("picker: no API server is given")
	case o.Namespace == "" || o.Fleet == "":
		return nil, errors.New("picker: --namespace and --fleet are needed: which fleet it picks for")
	case o.Every <= 0 || o.Most < 0:
		return nil, fmt.Errorf("picker: --every is %v and --most %d: want a time, and a number from 0", o.Every, o.Most)
	}
	f, err := NewFollower(o)
	if err != nil {
		return nil, err
	}
	p := &Picker{o: o, server: &Server{}, health: health.NewServer(), follower: f}
	for i, address := range []string{o.Listen, o.Health} {
		if p.listens[i], err = new(net.ListenConfig).Listen(context.Background(), "tcp", address); err != nil {
			if i > 0 {
				_ = p.listens[0].Close()
			}
			return nil, fmt.Errorf("picker: %w", err)
		}
	}
	p.process = NewGRPC(p.server, p.health)
	p.probes = grpc.NewServer()
	healthpb.RegisterHealthServer(p.probes, p.health)
	p.ready(false)
	return p, nil
}

// NewGRPC is a gRPC server of external processing with its health service.
func NewGRPC(s *Server, h *health.Server) *grpc.Server {
	g := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(maxStreams),
		grpc.ForceServerCodecV2(newCodec()), grpc.NumStreamWorkers(streamWorkers),
		// A window of its own choice would cost pings of every connection.
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}))
	service := extproc.ExternalProcessor_ServiceDesc
	service.Streams = []grpc.StreamDesc{{StreamName: "Process", ServerStreams: true, ClientStreams: true,
		Handler: func(_ any, stream grpc.ServerStream) error { return s.process(stream) }}}
	g.RegisterService(&service, s)
	healthpb.RegisterHealthServer(g, h)
	return g
}

// ready sets the three health services.
func (p *Picker) ready(yes bool) {
	serving := healthpb.HealthCheckResponse_NOT_SERVING
	if yes {
		serving = healthpb.HealthCheckResponse_SERVING
	}
	p.health.SetServingStatus(healthLive, healthpb.HealthCheckResponse_SERVING)
	p.health.SetServingStatus(healthReady, serving)
	p.health.SetServingStatus(healthProcess, serving)
}

// Addr is where external processing is served.
func (p *Picker) Addr() string { return p.listens[0].Addr().String() }

// HealthAddr is where probes ask.
func (p *Picker) HealthAddr() string { return p.listens[1].Addr().String() }

// Run serves until ctx ends, and then lets requests on their way end.
func (p *Picker) Run(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	if p.o.Service != "" {
		if err := p.publish(ctx); err != nil {
			// Gateways may route here by pools that others wrote.
			p.o.Log.Error("the pools are not published", "error", err)
		}
	}
	ended := make(chan error, 3)
	go func() { ended <- p.probes.Serve(p.listens[1]) }()
	go func() { ended <- p.process.Serve(p.listens[0]) }()
	go func() {
		ended <- p.follower.Run(inner, func(t *Table) {
			p.server.Use(t)
			p.ready(true)
		})
	}()
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	p.ready(false)
	late := time.AfterFunc(stopTime, p.process.Stop)
	p.process.GracefulStop()
	late.Stop()
	p.probes.Stop()
	return err
}

func (p *Picker) publish(ctx context.Context) error {
	_, port, err := net.SplitHostPort(p.Addr())
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	c, err := client.New(p.o.Config, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		return err
	}
	return Publish(ctx, c, Pools(p.o.Namespace, p.o.Fleet, p.o.Service, number, p.o.FailOpen))
}
