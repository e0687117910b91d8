package dataplane_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// counter is a stateful runtime: it answers how many queries of the stream there have been.
func counter(_ context.Context, b *dataplane.Batch) error {
	for k := range b.Portions {
		p := &b.Portions[k]
		n := uint64(1)
		if len(p.State) == 8 {
			n += binary.LittleEndian.Uint64(p.State)
		}
		p.State = binary.LittleEndian.AppendUint64(nil, n)
		p.Outputs = []tensor.Tensor{values("n", []uint64{n})}
	}
	return nil
}

// remembering is a plane of a stateless stage followed by a stateful one.
func remembering(t *testing.T, run func(context.Context, *dataplane.Batch) error, c dataplane.Config) *dataplane.Plane {
	t.Helper()
	return staged(t, []serving.Stage{
		{Name: "see", Next: []serving.Edge{{To: 1, FanOut: 1}}}, {Name: "follow", Stateful: true},
	}, func(ctx context.Context, b *dataplane.Batch) error {
		if b.Variant == 0 {
			return echo(ctx, b)
		}
		return run(ctx, b)
	}, time.Second, 8, c)
}

func of(stream string) *dataplane.Request {
	r := one()
	r.Stream = stream
	return r
}

// count asks for the number of a query in its stream; 0 and the error when it is not answered.
func count(t *testing.T, p *dataplane.Plane, r *dataplane.Request) (uint64, error) {
	t.Helper()
	a, err := p.Infer(t.Context(), r)
	if err != nil {
		return 0, err
	}
	return numbers(&a.Outputs[0])[0], nil
}

func expect(t *testing.T, p *dataplane.Plane, r *dataplane.Request, want uint64) {
	t.Helper()
	if n, err := count(t, p, r); n != want || err != nil {
		t.Errorf("stream %q: query %d of it, %v, want %d", r.Stream, n, err, want)
	}
}

func TestStreams(t *testing.T) {
	p := remembering(t, counter, dataplane.Config{})
	defer p.Close()
	for n := range uint64(3) {
		expect(t, p, of("a"), n+1)
	}
	expect(t, p, of("b"), 1)
	expect(t, p, of(""), 1)
	expect(t, p, of(""), 1)
	again := of("a")
	again.Begins = true
	expect(t, p, again, 1)
	last := of("a")
	last.Ends = true
	expect(t, p, last, 2)
	expect(t, p, of("a"), 1)
	expect(t, p, of("b"), 2)
}

// A query that ends its stream and does not get to the stateful stage ends it all the same.
func TestStreamEndsUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		p := remembering(t, func(ctx context.Context, b *dataplane.Batch) error {
			if slow.Load() {
				time.Sleep(time.Minute / 2)
			}
			return counter(ctx, b)
		}, dataplane.Config{})
		defer p.Close()
		expect(t, p, of("a"), 1)
		slow.Store(true)
		busy := make(chan error, 1)
		go func() { _, err := p.Infer(t.Context(), of("b")); busy <- err }()
		time.Sleep(100 * time.Millisecond)
		last := of("a")
		last.Ends = true
		if _, err := count(t, p, last); outcome(err) != serving.Dropped {
			t.Errorf("%v, want it dropped behind a slow one", err)
		}
		<-busy
		slow.Store(false)
		expect(t, p, of("a"), 1)
	})
}

// An instance is lost while it works on a stream: what it had made of the state by then does not count, and another one
// goes on from where the stream was.
func TestStateOutlivesInstance(t *testing.T) {
	var runs atomic.Int32
	p := remembering(t, func(ctx context.Context, b *dataplane.Batch) error {
		err := counter(ctx, b)
		if runs.Add(1) == 3 {
			return fmt.Errorf("gone: %w", dataplane.ErrInstanceLost)
		}
		return err
	}, dataplane.Config{})
	defer p.Close()
	for n := range uint64(5) {
		expect(t, p, of("a"), n+1)
	}
	if runs.Load() != 6 {
		t.Errorf("%d runs for 5 queries, of which one was lost", runs.Load())
	}
}

// A query is cancelled while it runs at the stateful stage: the next of its stream finds what it has left behind.
func TestStateOfCancelledQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := remembering(t, func(ctx context.Context, b *dataplane.Batch) error {
			time.Sleep(100 * time.Millisecond)
			return counter(ctx, b)
		}, dataplane.Config{State: 8})
		defer p.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := p.Infer(ctx, of("a")); outcome(err) != serving.Cancelled {
			t.Errorf("%v, want it cancelled", err)
		}
		expect(t, p, of("a"), 2)
	})
}

// shelf is a store in memory.
type shelf struct {
	mu    sync.Mutex
	have  map[dataplane.StateKey][]byte
	fail  atomic.Bool
	reads atomic.Int32
}

func (s *shelf) Get(k dataplane.StateKey) ([]byte, error) {
	s.reads.Add(1)
	if s.fail.Load() {
		return nil, errors.New("the disk is gone")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.have[k], nil
}

// kept is what lies there, whatever fails.
func (s *shelf) kept(k dataplane.StateKey) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.have[k]
}

func (s *shelf) Keep(more map[dataplane.StateKey][]byte) error {
	if s.fail.Load() {
		return errors.New("the disk is gone")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.have, more)
	maps.DeleteFunc(s.have, func(_ dataplane.StateKey, v []byte) bool { return v == nil })
	return nil
}

// Streams go on after a restart where they were, also where more of them are under way than memory has room for; one
// that has ended before is new.
func TestStatesOutliveThePlane(t *testing.T) {
	store := &shelf{have: map[dataplane.StateKey][]byte{}}
	const streams = 50
	next := func(k int) string { return fmt.Sprint("stream ", k) }
	for start := range uint64(3) {
		p := remembering(t, counter, dataplane.Config{States: store, StatesHeld: 10 * (8 + 256)})
		for round := range uint64(2) {
			for k := range streams {
				expect(t, p, of(next(k)), start*2+round+1)
			}
		}
		last := of("short")
		last.Ends = true
		expect(t, p, of("short"), 1)
		expect(t, p, last, 2)
		p.Close()
	}
	if len(store.have) != streams {
		t.Errorf("%d states are kept, want %d", len(store.have), streams)
	}
	if store.reads.Load() < streams*2 {
		t.Errorf("only %d reads: the memory was not short", store.reads.Load())
	}
	for k := range store.have {
		if k.App != "app" || k.Stage != "follow" || !strings.HasPrefix(k.Stream, "stream ") {
			t.Errorf("kept as %+v", k)
		}
	}
}

// Without a store the states unused for longest are forgotten when there are too many.
func TestStatesAreBounded(t *testing.T) {
	p := remembering(t, counter, dataplane.Config{StatesHeld: 3 * (8 + 256)})
	defer p.Close()
	for _, s := range []string{"a", "b", "c"} {
		expect(t, p, of(s), 1)
	}
	expect(t, p, of("a"), 2)
	expect(t, p, of("d"), 1) // b goes
	expect(t, p, of("a"), 3)
	expect(t, p, of("c"), 2)
	expect(t, p, of("b"), 1)
}

// A state that is too large, and a store that cannot be read, fail the query that needs them; a store that cannot be
// written is told of, and written again later.
func TestStateTroubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &shelf{have: map[dataplane.StateKey][]byte{}}
		var troubles atomic.Int32
		p := remembering(t, func(ctx context.Context, b *dataplane.Batch) error {
			_ = counter(ctx, b)
			if b.Portions[0].Inputs[0].Data[0] == 9 {
				b.Portions[0].State = make([]byte, 101)
			}
			return nil
		}, dataplane.Config{States: store, State: 100, Trouble: func(error) { troubles.Add(1) }})
		expect(t, p, of("a"), 1)
		large := of("a")
		large.Inputs[0].Data = []byte{9}
		if _, err := count(t, p, large); outcome(err) != serving.Failed ||
			!strings.Contains(err.Error(), "101 bytes of a stream, at most 100 are taken (server.limits.state)") {
			t.Error(err)
		}
		expect(t, p, of("a"), 2)
		synctest.Wait()
		store.fail.Store(true)
		expect(t, p, of("a"), 3) // from memory
		if _, err := count(t, p, of("b")); outcome(err) != serving.Failed ||
			!strings.Contains(err.Error(), "the disk is gone") {
			t.Error(err)
		}
		synctest.Wait()
		if troubles.Load() == 0 {
			t.Error("nobody was told that states are not kept")
		}
		store.fail.Store(false)
		time.Sleep(2 * time.Second)
		if b := store.kept(dataplane.StateKey{App: "app", Stage: "follow", Stream: "a"}); len(b) != 8 || b[0] != 3 {
			t.Errorf("%v is kept after the store has come back", b)
		}
		p.Close()
	})
}
