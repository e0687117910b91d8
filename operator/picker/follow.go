package picker

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/internal/api/listen"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/kinds"
)

// Values of v1alpha1.LabelRole.
const (
	roleWorker     = "worker"
	roleDispatcher = "dispatcher"
)

// Follower makes tables of the fleet's pods, of who holds its cells, and of what these have loaded.
type Follower struct {
	o       Options
	cache   cache.Cache
	http    *http.Client
	changed chan struct{}
	log     *slog.Logger

	encrypted bool // dispatchers serve TLS
	cells     map[int]*cellState
	known     map[string]*Endpoint // by address, so that counters outlive tables
}

// NewFollower watches nothing before Run.
func NewFollower(o Options) (*Follower, error) {
	scheme, err := kinds.Scheme()
	if err != nil {
		return nil, err
	}
	ours := labels.SelectorFromSet(labels.Set{v1alpha1.LabelFleet: o.Fleet})
	only := cache.ByObject{Namespaces: map[string]cache.Config{o.Namespace: {}}, Label: ours,
		Transform: cache.TransformStripManagedFields()}
	c, err := cache.New(o.Config, cache.Options{Scheme: scheme, Mapper: kinds.Mapper(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: only, &coordinationv1.Lease{}: only}})
	if err != nil {
		return nil, fmt.Errorf("picker: %w", err)
	}
	asks := &http.Client{Transport: newKeyed(o)}
	return &Follower{o: o, cache: c, http: asks, changed: make(chan struct{}, 1), log: o.Log,
		cells: map[int]*cellState{}, known: map[string]*Endpoint{}}, nil
}

// Run gives tables to use until ctx ends: one whenever pods change, and one for every look at the cells.
func (f *Follower) Run(ctx context.Context, use func(*Table)) error {
	for _, kind := range []client.Object{&corev1.Pod{}, &coordinationv1.Lease{}} {
		informer, err := f.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("picker: %w", err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { f.wake() },
			UpdateFunc: func(any, any) { f.wake() },
			DeleteFunc: func(any) { f.wake() },
		}); err != nil {
			return fmt.Errorf("picker: %w", err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- f.cache.Start(ctx) }()
	if !f.cache.WaitForCacheSync(ctx) {
		return <-ended
	}
	tick := time.NewTicker(f.o.Every)
	defer tick.Stop()
	defer f.http.CloseIdleConnections()
	look := true
	for {
		t, err := f.table(ctx, look)
		if err != nil {
			return err
		}
		use(t)
		select {
		case err := <-ended:
			return err
		case <-f.changed:
			look = false // leases are renewed about once a second: pods alone are looked at
		case <-tick.C:
			look = true
		}
	}
}

func (f *Follower) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// table makes a table of what the cache has; look asks the cells anew.
func (f *Follower) table(ctx context.Context, look bool) (*Table, error) {
	var pods corev1.PodList
	if err := f.cache.List(ctx, &pods); err != nil {
		return nil, fmt.Errorf("picker: pods: %w", err)
	}
	if look {
		if err := f.look(ctx); err != nil {
			return nil, err
		}
	}
	t := &Table{Apps: map[string][]Choice{}, Most: f.o.Most}
	workers, seen := map[string]*Endpoint{}, map[string]bool{}
	for i := range pods.Items {
		p := &pods.Items[i]
		if !ready(p) {
			continue
		}
		e := f.endpoint(p.Status.PodIP)
		seen[e.Address] = true
		switch p.Labels[v1alpha1.LabelRole] {
		case roleDispatcher:
			if f.encrypted {
				continue
			}
			t.Dispatchers = append(t.Dispatchers, Choice{Endpoint: e, Share: 1})
		case roleWorker:
			workers[p.Labels[v1alpha1.LabelCell]+"/"+p.Labels[v1alpha1.LabelMachine]] = e
		}
	}
	for n, c := range f.cells {
		for _, s := range c.serving() {
			if e := workers[strconv.Itoa(n)+"/"+s.machine]; e != nil {
				t.Apps[s.app] = append(t.Apps[s.app], Choice{e, s.model, s.share})
			}
		}
	}
	for address := range f.known {
		if !seen[address] {
			delete(f.known, address)
		}
	}
	return t, nil
}

func (f *Follower) endpoint(address string) *Endpoint {
	e := f.known[address]
	if e == nil {
		e = &Endpoint{Address: address}
		f.known[address] = e
	}
	return e
}

// look asks the holder of every cell what it has loaded. A cell that does not answer keeps its last state for as long
// as somebody holds it: its workers go on.
func (f *Follower) look(ctx context.Context) error {
	var leases coordinationv1.LeaseList
	if err := f.cache.List(ctx, &leases); err != nil {
		return fmt.Errorf("picker: leases: %w", err)
	}
	held, encrypted := map[int]bool{}, false
	for i := range leases.Items {
		l := &leases.Items[i]
		cell, err := strconv.Atoi(l.Labels[v1alpha1.LabelCell])
		if err != nil || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
			continue
		}
		host, _, err := net.SplitHostPort(l.Annotations[annotationHTTP])
		if err != nil {
			continue
		}
		held[cell] = true
		encrypted = encrypted || l.Annotations[annotationKey] != ""
		state, err := ask(ctx, f.http, net.JoinHostPort(host, strconv.Itoa(f.o.Admin)), cell, f.cells[cell])
		if err != nil {
			f.log.Warn("a cell does not say what it serves", "cell", cell, "error", err)
			continue
		}
		f.cells[cell] = state
	}
	if encrypted && !f.encrypted {
		f.log.Warn("dispatchers serve TLS, which gateways do not speak to a pool's endpoints: they get no queries, " +
			"only workers do. Take spec.tls from the fleet, and let the gateway end TLS")
	}
	f.encrypted = encrypted
	for n := range f.cells {
		if !held[n] {
			delete(f.cells, n)
		}
	}
	return nil
}

// Annotations of a cell's Lease (operator/dispatcher/cells): where its holder answers, and what other replicas know it
// by, where it serves TLS.
const (
	annotationHTTP = "sluice.dev/http"
	annotationKey  = "sluice.dev/key"
)

func ready(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil || p.Status.PodIP == "" {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Options configure a picker.
type Options struct {
	Config           *rest.Config
	Namespace, Fleet string
	// Listen and Health are the addresses of external processing and of the health service for probes.
	Listen, Health string
	// Every is the time between two looks at what cells have loaded.
	Every time.Duration
	// Admin is the port of dispatchers' admin address.
	Admin int
	// Key is shown to dispatchers, where the fleet has keys; its role is look.
	Key string
	// Most is how many requests an endpoint of an app may have under way; 0 for no bound.
	Most int64
	// Service is the Service of the picker, for the InferencePools that it publishes; empty publishes none. FailOpen
	// has gateways go their own way while no picker answers.
	Service  string
	FailOpen bool
	// Net is the network that leads to dispatchers.
	Net listen.Net
	Log *slog.Logger
}
