package scaler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/scaler/pb"
)

// Options configure a scaler.
type Options struct {
	Config *rest.Config
	// Namespaces whose apps are told of; none are all.
	Namespaces []string
	// Listen is the address of the external scaler protocol.
	Listen string
	// ExternalMetrics is the address of the external metrics API, over TLS; empty for none.
	ExternalMetrics string
	Log             *slog.Logger
}

// Scaler tells autoscalers how busy apps are.
type Scaler struct {
	o       Options
	cache   cache.Cache
	grpc    *grpc.Server
	server  *Server
	metrics *http.Server
	listen  net.Listener
	secure  net.Listener // nil for none
}

// stopTime bounds how long calls may take to end. Streams of KEDA never do.
const stopTime = 2 * time.Second

// New binds the scaler's addresses.
func New(ctx context.Context, o Options) (*Scaler, error) {
	if o.Config == nil {
		return nil, errors.New("scaler: no API server is given")
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	within := map[string]cache.Config{}
	for _, n := range o.Namespaces {
		within[n] = cache.Config{}
	}
	c, err := cache.New(o.Config, cache.Options{Scheme: scheme, DefaultNamespaces: within,
		DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, fmt.Errorf("scaler: %w", err)
	}
	s := &Scaler{o: o, cache: c, grpc: grpc.NewServer(), server: NewServer(c)}
	pb.RegisterExternalScalerServer(s.grpc, s.server)
	healthpb.RegisterHealthServer(s.grpc, health.NewServer())
	if s.listen, err = new(net.ListenConfig).Listen(ctx, "tcp", o.Listen); err != nil {
		return nil, fmt.Errorf("scaler: %w", err)
	}
	if o.ExternalMetrics == "" {
		return s, nil
	}
	direct, err := client.New(o.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, errors.Join(err, s.listen.Close())
	}
	secure, err := frontProxy(ctx, direct)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("scaler: %w", err), s.listen.Close())
	}
	if s.secure, err = new(net.ListenConfig).Listen(ctx, "tcp", o.ExternalMetrics); err != nil {
		return nil, errors.Join(fmt.Errorf("scaler: %w", err), s.listen.Close())
	}
	s.metrics = &http.Server{Handler: Metrics(c), TLSConfig: secure, ReadTimeout: 30 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug)}
	return s, nil
}

// Addr is where the external scaler protocol is answered.
func (s *Scaler) Addr() string { return s.listen.Addr().String() }

// MetricsAddr is where the external metrics API is answered.
func (s *Scaler) MetricsAddr() string { return s.secure.Addr().String() }

// Run answers until ctx ends.
func (s *Scaler) Run(ctx context.Context) error {
	informer, err := s.cache.GetInformer(ctx, &v1alpha1.InferenceApp{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("scaler: %w", err)
	}
	changed := func(o any) {
		if a, ok := o.(*v1alpha1.InferenceApp); ok {
			s.server.Changed(client.ObjectKeyFromObject(a))
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }, DeleteFunc: changed,
	}); err != nil {
		return fmt.Errorf("scaler: %w", err)
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 3)
	go func() { ended <- s.cache.Start(inner) }()
	if !s.cache.WaitForCacheSync(ctx) {
		return errors.New("scaler: the InferenceApps cannot be read")
	}
	go func() { ended <- s.grpc.Serve(s.listen) }()
	if s.metrics != nil {
		go func() { ended <- s.metrics.ServeTLS(s.secure, "", "") }()
	}
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	late := time.AfterFunc(stopTime, s.grpc.Stop)
	s.grpc.GracefulStop()
	late.Stop()
	if s.metrics != nil {
		_ = s.metrics.Close() // calls of the API server are made anew
	}
	return err
}
