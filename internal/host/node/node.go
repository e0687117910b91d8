package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
	"github.com/sluice-serving/sluice/internal/runtime/python"
	"github.com/sluice-serving/sluice/serving"
)

// Config is what a node is made of.
type Config struct {
	// Repository is a folder laid out as NAME/VERSION/model.onnx or NAME/VERSION/model.py.
	Repository string
	// Preload lists the models to load at the start; "*" is all. The node is ready when they are warm.
	Preload []string
	// Cores is how many threads a run may use where its load does not say; 0 for all of the machine. Slots is how many
	// runs of a model go beside each other where its load does not say; 0 for one.
	Cores, Slots int
	// Device says where ONNX Runtime runs models; its zero value is the processor.
	Device onnx.Device
	// Python says how models in Python are run. Its Models are not used.
	Python python.Config
	// SentPython takes files of Python with a load. They are code of whoever reaches the node.
	SentPython bool
	// Fake, if not nil, stands in for all models: it answers loads of any name, and takes no repository.
	Fake dataplane.Backend
	// Fetch puts a model that the repository lacks into a folder of it, which it makes; nil where nothing is fetched.
	Fetch func(ctx context.Context, uri, digest, folder string) error
	// Linger is how long a model that came with a load stays when the runs that needed it are gone; 0 for ten minutes.
	Linger time.Duration
	// Server is where and how the node is reached.
	Server server.Config
	Log    *slog.Logger
}

// Extension is what a node lists among its extensions of the protocol: loads take the settings of Settings.
const Extension = "sluice_node"

// Node is a worker. Serve runs it.
type Node struct {
	c      Config
	log    *slog.Logger
	front  *server.Server
	python *python.Backend
	ready  atomic.Bool
	claims claims

	mu     sync.Mutex
	onnx   *onnx.Backend // nil until a model needs it
	models map[string]*model
	apps   map[serving.AppID]*model
	last   serving.VariantID
	turns  map[string]chan struct{} // by name: held by who loads or unloads it
}

// defaultLinger is a server's time to start again, and to find its models there.
const defaultLinger = 10 * time.Minute

// unlimited is how long a silent connection may stand: those of dispatchers carry the claims of their runs.
const unlimited = 365 * 24 * time.Hour

// New opens the repository and binds the addresses. The caller calls Serve or Close.
func New(c Config) (*Node, error) {
	var err error
	if c.Fake == nil {
		repo, err := repository.Open(c.Repository)
		if err != nil {
			return nil, err
		}
		if err := repo.Close(); err != nil {
			return nil, err
		}
	}
	if c.Cores <= 0 {
		c.Cores = runtime.GOMAXPROCS(0)
	}
	c.Slots = max(c.Slots, 1)
	if c.Linger <= 0 {
		c.Linger = defaultLinger
	}
	n := &Node{
		c: c, log: c.Log, models: make(map[string]*model), apps: make(map[serving.AppID]*model),
		turns: make(map[string]chan struct{}),
	}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	c.Python.Models = nil
	c.Python.Log = func(model, line string) { n.log.Info("python", "model", model, "output", line) }
	n.python = python.New(c.Python)
	c.Server.ModelControl, c.Server.Log = true, n.log
	// Claims last as long as connections do. Those of dead clients end by keep-alives.
	c.Server.Connected = func(remote string, begins bool) {
		for _, name := range n.claims.connected(remote, begins) {
			time.AfterFunc(n.c.Linger, func() { n.dropUnclaimed(name) })
		}
	}
	if c.Server.ConnectionAge <= 0 {
		c.Server.ConnectionAge = unlimited
	}
	if c.Server.IdleTimeout <= 0 {
		c.Server.IdleTimeout = unlimited
	}
	c.Server.Extensions = append(slices.Clone(c.Server.Extensions), Extension)
	c.Server.MaxRequest = math.MaxInt32 // a load may have the model's file
	c.Server.Output = math.MaxInt64     // who sends queries here bounds their outputs
	n.front, err = server.New(c.Server, n)
	return n, err
}

// GRPCAddr is the address of the gRPC listener, or "off"; HTTPAddr that of the HTTP listener.
func (n *Node) GRPCAddr() string { return n.front.GRPCAddr() }

// HTTPAddr is the address of the HTTP listener, or "off".
func (n *Node) HTTPAddr() string { return n.front.HTTPAddr() }

// Serve answers until ctx ends, and then until what runs has ended, for at most the configuration's DrainTimeout.
func (n *Node) Serve(ctx context.Context) error {
	loaded := make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		err := n.preload(ctx)
		if err != nil && ctx.Err() == nil {
			stop()
		}
		loaded <- err
	}()
	n.log.Info("node", "grpc", n.GRPCAddr(), "http", n.HTTPAddr(), "repository", n.c.Repository,
		"onnxruntime", onnx.Library().Path)
	err := n.front.Serve(ctx)
	if failed := <-loaded; failed != nil && !errors.Is(failed, context.Canceled) {
		err = errors.Join(failed, err)
	}
	return errors.Join(err, n.closeModels())
}

// Close releases a node whose Serve was not called.
func (n *Node) Close() error {
	n.front.Close()
	return n.closeModels()
}

// preload loads what the node begins with.
func (n *Node) preload(ctx context.Context) error {
	names := n.c.Preload
	if slices.Contains(names, "*") {
		names = n.Unused()
	}
	for _, name := range names {
		if err := n.Load(ctx, name, server.Loading{}); err != nil {
			return fmt.Errorf("model %q: %w", name, err)
		}
	}
	n.ready.Store(true)
	return nil
}

func (n *Node) closeModels() error {
	n.mu.Lock()
	all := n.models
	n.models, n.apps = make(map[string]*model), make(map[serving.AppID]*model)
	n.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		errs = append(errs, all[name].close())
	}
	return errors.Join(errs...)
}

// turn has one caller at a time load or unload a model of a name.
func (n *Node) turn(ctx context.Context, name string) (done func(), err error) {
	n.mu.Lock()
	t := n.turns[name]
	if t == nil {
		t = make(chan struct{}, 1)
		n.turns[name] = t
	}
	n.mu.Unlock()
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Load implements server.Service: it returns when the model is warm for what is asked.
func (n *Node) Load(ctx context.Context, name string, how server.Loading) error {
	want, err := settingsOf(how.Settings)
	if err != nil {
		return err
	}
	if err := repository.CheckName(name); err != nil {
		return oip.Errorf(oip.NotFound, "", "%v", err)
	}
	sent, err := n.put(name, &how)
	if err != nil {
		return err
	}
	done, err := n.turn(ctx, name)
	if err != nil {
		return errors.Join(err, removed(sent))
	}
	defer done()
	owner, remote := server.Owner(ctx)
	n.claims.claim(name, owner, remote)
	n.mu.Lock()
	m := n.models[name]
	n.mu.Unlock()
	if m != nil && !m.broken.Load() && sent == "" {
		return m.widen(ctx, want)
	}
	if m != nil { // a broken one, or one of which another file has been sent
		n.drop(m)
	}
	began := time.Now()
	m, err = n.open(ctx, name, sent, want)
	if err != nil {
		n.log.Warn("a model is not loaded", "model", name, "error", err)
		return err
	}
	n.mu.Lock()
	n.models[name], n.apps[m.seen.App] = m, m
	n.mu.Unlock()
	n.log.Info("loaded", "model", name, "slots", len(m.runners), "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// Unload implements server.Service: it returns when nothing of the model runs any more and its memory is free. A model
// that another run needs stays, when who asks names its run.
func (n *Node) Unload(ctx context.Context, seen *server.Model, _ bool) error {
	done, err := n.turn(ctx, seen.Name)
	if err != nil {
		return err
	}
	defer done()
	if owner, _ := server.Owner(ctx); owner != "" && n.claims.release(seen.Name, owner) {
		n.log.Info("not unloaded: another run needs it", "model", seen.Name)
		return nil
	}
	n.mu.Lock()
	m := n.models[seen.Name]
	n.mu.Unlock()
	if m == nil {
		return nil
	}
	n.forget(m)
	n.log.Info("unloaded", "model", seen.Name)
	return m.close()
}

// drop has no further query find a model, and ends it.
func (n *Node) drop(m *model) {
	n.forget(m)
	if err := m.close(); err != nil {
		n.log.Warn("a model is not released", "model", m.seen.Name, "error", err)
	}
}

// forget has no further query find a model.
func (n *Node) forget(m *model) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.models[m.seen.Name] == m {
		delete(n.models, m.seen.Name)
	}
	delete(n.apps, m.seen.App)
}

// Ready implements server.Service.
func (n *Node) Ready() bool { return n.ready.Load() }

// Unready implements server.Service.
func (n *Node) Unready() string { return "not ready" }

// Models implements server.Service.
func (n *Node) Models() []*server.Model {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]*server.Model, 0, len(n.models))
	for _, m := range n.models {
		out = append(out, m.seen)
	}
	slices.SortFunc(out, func(a, b *server.Model) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Lookup implements server.Service.
func (n *Node) Lookup(name string) (*server.Model, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.models[name]
	if m == nil {
		return nil, false
	}
	return m.seen, true
}

// ModelReady implements server.Service.
func (n *Node) ModelReady(m *server.Model, version string) bool { return n.Reason(m, version) == "" }

// Reason implements server.Service.
func (n *Node) Reason(seen *server.Model, _ string) string {
	n.mu.Lock()
	m := n.apps[seen.App]
	n.mu.Unlock()
	switch {
	case m == nil:
		return "it is not loaded"
	case m.broken.Load():
		return "its process has ended: load it again"
	}
	return ""
}

// Unused implements server.Service.
func (n *Node) Unused() []string {
	if n.c.Fake != nil {
		return nil
	}
	repo, err := repository.Open(n.c.Repository)
	if err != nil {
		return nil
	}
	defer func() { _ = repo.Close() }()
	names, err := repo.Names()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, loaded := n.Lookup(name)
		return loaded
	})
}

// Statistics implements server.Service.
func (n *Node) Statistics(seen *server.Model) []server.VersionStatistics {
	n.mu.Lock()
	m := n.apps[seen.App]
	n.mu.Unlock()
	if m == nil {
		return nil
	}
	return m.statistics()
}
