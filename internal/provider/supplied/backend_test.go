package supplied

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/provider"
	"github.com/sluice-serving/sluice/serving"
)

// supply counts what it is asked for.
type supply struct {
	mu       sync.Mutex
	takes    time.Duration
	fails    error
	acquired []provider.Worker
	released int
}

func (s *supply) Acquire(ctx context.Context, w provider.Worker) (provider.Machine, error) {
	s.mu.Lock()
	s.acquired = append(s.acquired, w)
	s.mu.Unlock()
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return provider.Machine{}, ctx.Err()
	}
	return provider.Machine{Address: "here:1", Started: s.takes}, s.fails
}

func (s *supply) Release(context.Context, provider.Worker) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released++
	return nil
}

func (s *supply) Watch(func(provider.Event)) func() { return func() {} }

func (s *supply) counts() (acquired, released int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.acquired), s.released
}

// server runs instances whose batches last until they are ended.
type server struct{ detached bool }

func (s *server) Launch(context.Context, dataplane.InstanceSpec) (dataplane.Runner, error) {
	return running{}, nil
}
func (s *server) Detach() { s.detached = true }

type running struct{}

func (running) Load(context.Context, serving.VariantID, int) error { return nil }
func (running) Unload(context.Context, serving.VariantID) error    { return nil }
func (running) Close() error                                       { return nil }
func (running) Run(ctx context.Context, _ *dataplane.Batch) error {
	<-ctx.Done()
	return ctx.Err()
}

func backend(s *supply, on *server, change func(*Config)) *Backend {
	c := Config{
		Worker: provider.Worker{Name: "w"}, Supply: s, Linger: 10 * time.Second,
		ModelOf: func(serving.VariantID) string { return "m" },
		Connect: func(string) (Server, error) { return on, nil },
	}
	if change != nil {
		change(&c)
	}
	return New(c)
}

func launch(t *testing.T, b *Backend) dataplane.Runner {
	t.Helper()
	r, err := b.Launch(context.Background(), dataplane.InstanceSpec{Variants: []serving.VariantID{0}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func want(t *testing.T, s *supply, acquired, released int) {
	t.Helper()
	if a, r := s.counts(); a != acquired || r != released {
		t.Errorf("acquired %d times and released %d times, want %d and %d", a, r, acquired, released)
	}
}

// Instances share the machine. It is kept for a while after the last.
func TestMachineIsSharedAndLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &supply{takes: time.Minute}
		b := backend(s, &server{}, nil)
		var all sync.WaitGroup
		runners := make([]dataplane.Runner, 2)
		for k := range runners {
			all.Go(func() { runners[k] = launch(t, b) })
		}
		all.Wait()
		want(t, s, 1, 0)
		if w := s.acquired[0]; len(w.Models) != 1 || w.Models[0] != "m" {
			t.Errorf("it was asked for %+v, want what the first instance runs", w)
		}
		_, _ = runners[0].Close(), runners[1].Close()
		time.Sleep(9 * time.Second)
		_ = launch(t, b).Close() // still there
		want(t, s, 1, 0)
		time.Sleep(11 * time.Second)
		want(t, s, 1, 1)
		_ = launch(t, b).Close()
		want(t, s, 2, 1)
		time.Sleep(time.Minute)
	})
}

// What nobody waits for any more is given back, ready or not.
func TestMachineThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &supply{takes: time.Hour}
		b := backend(s, &server{}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Launch(ctx, dataplane.InstanceSpec{}); !errors.Is(err, dataplane.ErrInstanceLost) {
			t.Errorf("the error is %v", err)
		}
		time.Sleep(11 * time.Second)
		want(t, s, 1, 1)
	})
}

// A machine that is lost ends what runs on it, and the next launch asks for another.
func TestLostMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, on := &supply{}, &server{}
		b := backend(s, on, nil)
		r := launch(t, b)
		ended := make(chan error, 1)
		go func() { ended <- r.Run(context.Background(), &dataplane.Batch{}) }()
		synctest.Wait()
		b.Lose("the node is gone")
		if err := <-ended; !errors.Is(err, dataplane.ErrInstanceLost) {
			t.Errorf("the batch ended with %v", err)
		}
		if !on.detached {
			t.Error("models would be unloaded on a machine that is gone")
		}
		next := launch(t, b)
		want(t, s, 2, 0)
		_, _ = r.Close(), next.Close()
		time.Sleep(time.Minute)
		want(t, s, 2, 1)
	})
}

func TestMachineThatCannotBeHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &supply{fails: &provider.Unavailable{Worker: "w", Why: "none", For: time.Minute}}
		var said error
		b := backend(s, &server{}, func(c *Config) { c.Had = func(_ provider.Machine, err error) { said = err } })
		_, err := b.Launch(t.Context(), dataplane.InstanceSpec{})
		var none *provider.Unavailable
		if !errors.Is(err, dataplane.ErrInstanceLost) || !errors.As(said, &none) {
			t.Errorf("the launch failed with %v, and %v was told", err, said)
		}
		synctest.Wait()
		want(t, s, 1, 1)
	})
}

// A dispatcher that hands its cell over leaves machines and models as they are.
func TestDetachedMachineStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, on := &supply{}, &server{}
		b := backend(s, on, nil)
		r := launch(t, b)
		b.Detach()
		_ = r.Close()
		time.Sleep(time.Hour)
		want(t, s, 1, 0)
		if !on.detached {
			t.Error("its models are unloaded")
		}
		if _, err := b.Launch(t.Context(), dataplane.InstanceSpec{}); err == nil {
			t.Error("it was used again")
		}
	})
}
