package supplied

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/provider"
	"github.com/sluice-serving/sluice/serving"
)

// DefaultLinger is how long a machine without instances is kept, where Config.Linger is 0: plans change their minds.
const DefaultLinger = 30 * time.Second

// releaseTimeout bounds a call of Supply.Release.
const releaseTimeout = time.Minute

// Config is what a backend needs to know of its worker.
type Config struct {
	Worker provider.Worker
	Supply provider.Supply
	// Linger is how long the machine is kept after its last instance; DefaultLinger where it is 0.
	Linger time.Duration
	// Keep never gives the machine back, as where it is paid for anyway.
	Keep bool
	// ModelOf returns the name of a variant's model on servers, "" for one that no machine has when it is ready; nil
	// where none has any.
	ModelOf func(serving.VariantID) string
	// Connect returns what runs instances on the server at an address.
	Connect func(address string) (Server, error)
	// Had is called when the machine was acquired, and when it could not be; nil for none. It returns soon.
	Had func(provider.Machine, error)
	// Trouble is called with what is for the log; nil for none.
	Trouble func(error)
}

// Server runs instances on the server of one machine.
type Server interface {
	dataplane.Backend
	// Detach has the runners that are closed from now on leave the server's models loaded.
	Detach()
}

// Backend implements dataplane.Backend for one worker.
type Backend struct {
	c Config

	mu       sync.Mutex
	had      *machine      // nil while the worker has none
	released chan struct{} // closed when the machine before has been given back; nil without one
	detached bool
}

// machine is one that was asked for.
type machine struct {
	users int
	idle  *time.Timer     // gives it back; nil while it is used
	gone  context.Context // ends when it is lost or given back
	lose  context.CancelCauseFunc
	// ready is closed once server or err is set; they do not change after.
	ready  chan struct{}
	server Server
	err    error
}

// errReleased ends what waits for a machine that is given back.
var errReleased = errors.New("the machine was given back")

// New returns the backend of a worker. It asks for nothing yet.
func New(c Config) *Backend {
	if c.Linger <= 0 {
		c.Linger = DefaultLinger
	}
	if c.Had == nil {
		c.Had = func(provider.Machine, error) {}
	}
	if c.Trouble == nil {
		c.Trouble = func(error) {}
	}
	return &Backend{c: c}
}

// Launch implements dataplane.Backend: it acquires the machine where the worker has none, and launches the instance on
// it. An error wraps dataplane.ErrInstanceLost unless the model is to blame.
func (b *Backend) Launch(ctx context.Context, s dataplane.InstanceSpec) (dataplane.Runner, error) {
	m, err := b.use(ctx, s.Variants)
	if err != nil {
		return nil, fmt.Errorf("worker %q: %w: %w", b.c.Worker.Name, dataplane.ErrInstanceLost, err)
	}
	limited, done := m.within(ctx)
	defer done()
	r, err := m.server.Launch(limited, s)
	if err != nil {
		b.leave(m)
		return nil, m.explain(b.c.Worker.Name, err)
	}
	return &runner{b: b, m: m, r: r}, nil
}

// use returns the worker's machine once it is ready, with one more user.
func (b *Backend) use(ctx context.Context, first []serving.VariantID) (*machine, error) {
	m, err := b.current(ctx, first)
	if err != nil {
		return nil, err
	}
	select {
	case <-m.ready:
	case <-ctx.Done():
		b.leave(m)
		return nil, fmt.Errorf("the machine is not ready yet: %w", ctx.Err())
	}
	if m.err != nil {
		b.leave(m)
		return nil, m.err
	}
	return m, nil
}

// current returns the worker's machine, asked for if need be, with one more user.
func (b *Backend) current(ctx context.Context, first []serving.VariantID) (*machine, error) {
	for {
		b.mu.Lock()
		if b.detached {
			b.mu.Unlock()
			return nil, errors.New("the server is shutting down")
		}
		if b.released == nil {
			break
		}
		released := b.released
		b.mu.Unlock()
		select {
		case <-released:
		case <-ctx.Done():
			return nil, fmt.Errorf("the machine before is being given back: %w", ctx.Err())
		}
	}
	defer b.mu.Unlock()
	if b.had == nil {
		m := &machine{ready: make(chan struct{})}
		m.gone, m.lose = context.WithCancelCause(context.Background())
		b.had = m
		w := b.c.Worker
		if b.c.ModelOf != nil {
			for _, v := range first {
				if name := b.c.ModelOf(v); name != "" {
					w.Models = append(w.Models, name)
				}
			}
		}
		go b.acquire(m, w)
	}
	m := b.had
	m.users++
	if m.idle != nil {
		m.idle.Stop()
		m.idle = nil
	}
	return m, nil
}

// acquire asks the supply for a machine and connects to it.
func (b *Backend) acquire(m *machine, w provider.Worker) {
	got, err := b.c.Supply.Acquire(m.gone, w)
	var server Server
	if err == nil {
		server, err = b.c.Connect(got.Address)
	}
	b.mu.Lock()
	failed := err != nil
	if lost := context.Cause(m.gone); lost != nil {
		err, failed = lost, false // who ended it sees to the rest
	}
	m.server, m.err = server, err
	var done chan struct{}
	switch {
	case err == nil && b.detached:
		m.detach()
	case err != nil:
		b.forget(m)
		if failed && !b.detached {
			done = make(chan struct{})
			b.released = done
		}
	}
	b.mu.Unlock()
	if !errors.Is(err, errReleased) {
		b.c.Had(got, err)
	}
	close(m.ready)
	if done != nil {
		b.release(done) // what was begun would stay, and perhaps nobody asks again
	}
}

// release gives the worker's machine back and lets launches go on.
func (b *Backend) release(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	err := b.c.Supply.Release(ctx, b.c.Worker)
	cancel()
	if err != nil {
		b.c.Trouble(fmt.Errorf("worker %q: its machine is not given back: %w", b.c.Worker.Name, err))
	}
	b.mu.Lock()
	b.released = nil
	b.mu.Unlock()
	close(done)
}

// forget has the next launch ask for a machine again. The caller holds mu.
func (b *Backend) forget(m *machine) {
	if b.had == m {
		b.had = nil
	}
	if m.idle != nil {
		m.idle.Stop()
		m.idle = nil
	}
}

// leave notes that an instance does not use the machine any more. The last one has it given back after a while.
func (b *Backend) leave(m *machine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m.users--
	if m.users > 0 || b.had != m || b.detached || b.c.Keep {
		return
	}
	m.idle = time.AfterFunc(b.c.Linger, func() { b.giveBack(m) })
}

// GiveBack gives the machine back at once if no instance uses it.
func (b *Backend) GiveBack() {
	b.mu.Lock()
	m := b.had
	b.mu.Unlock()
	if m != nil {
		b.giveBack(m)
	}
}

func (b *Backend) giveBack(m *machine) {
	b.mu.Lock()
	if m.users > 0 || b.had != m || b.detached {
		b.mu.Unlock()
		return
	}
	b.forget(m)
	done := make(chan struct{})
	b.released = done
	b.mu.Unlock()
	m.lose(errReleased)
	<-m.ready // Acquire and Release of a worker do not overlap
	b.release(done)
}

// Lose notes that the machine is gone. What runs on it fails with dataplane.ErrInstanceLost.
func (b *Backend) Lose(why string) {
	b.mu.Lock()
	m := b.had
	if m != nil {
		b.forget(m)
		m.detach() // nothing is unloaded there any more
	}
	b.mu.Unlock()
	if m != nil {
		m.lose(fmt.Errorf("the machine is gone: %s", why))
	}
}

// Idle reports whether no instance uses the worker's machine, or it has none.
func (b *Backend) Idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.had == nil || b.had.users == 0
}

// Detach has the machine and the models on it stay as they are, whatever is closed from now on: another process takes
// them over.
func (b *Backend) Detach() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.detached = true
	m := b.had
	if m == nil {
		return
	}
	if m.idle != nil {
		m.idle.Stop()
		m.idle = nil
	}
	m.detach()
}

// detach has the server's models stay loaded, if there is a server. The caller holds mu.
func (m *machine) detach() {
	if m.server != nil {
		m.server.Detach()
	}
}

// within returns a context that ends with ctx, and when the machine is gone.
func (m *machine) within(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(m.gone, cancel)
	return out, func() { stop(); cancel() }
}

// explain blames the machine for an error if it is gone.
func (m *machine) explain(worker string, err error) error {
	if lost := context.Cause(m.gone); err != nil && lost != nil {
		return &dataplane.RemoteError{
			What: "the machine is gone", Err: fmt.Errorf("worker %q: %w: %w", worker, dataplane.ErrInstanceLost, lost),
		}
	}
	return err
}

// runner is an instance on a machine.
type runner struct {
	b *Backend
	m *machine
	r dataplane.Runner
}

// Load implements dataplane.Runner.
func (r *runner) Load(ctx context.Context, v serving.VariantID, limit int) error {
	ctx, done := r.m.within(ctx)
	defer done()
	return r.m.explain(r.b.c.Worker.Name, r.r.Load(ctx, v, limit))
}

// Unload implements dataplane.Runner.
func (r *runner) Unload(ctx context.Context, v serving.VariantID) error {
	ctx, done := r.m.within(ctx)
	defer done()
	return r.m.explain(r.b.c.Worker.Name, r.r.Unload(ctx, v))
}

// Run implements dataplane.Runner.
func (r *runner) Run(ctx context.Context, batch *dataplane.Batch) error {
	ctx, done := r.m.within(ctx)
	defer done()
	return r.m.explain(r.b.c.Worker.Name, r.r.Run(ctx, batch))
}

// Close implements dataplane.Runner.
func (r *runner) Close() error {
	err := r.r.Close()
	if r.m.gone.Err() != nil {
		err = nil // there is nothing left to release
	}
	r.b.leave(r.m)
	return err
}
