package dataplane

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// StateStore keeps the states of streams at stateful stages beyond the life of a plane. Several goroutines call it at
// once.
type StateStore interface {
	// Get returns a state; nil when there is none. The plane keeps the slice and does not change it.
	Get(StateKey) ([]byte, error)
	// Keep writes states, all or none of them. It deletes those that are nil. The store must neither keep nor change
	// the map and its slices. When it is full it deletes the states that were written longest ago.
	Keep(map[StateKey][]byte) error
}

// StateKey names a state by names that stay the same from run to run.
type StateKey struct{ App, Stage, Stream string }

// states holds the states of streams in memory and writes them to the store in the background. So no answer waits for
// the disk. States that are not written yet are lost when the process dies, but not when an instance or a worker does.
type states struct {
	store    StateStore // nil keeps states in memory alone
	maxBytes int        // of one state
	capacity int64      // bytes of all states that are held
	trouble  func(error)

	mu      sync.Mutex
	held    map[StateKey]*list.Element // of *state
	recent  list.List                  // of all of them, the least recently used in front
	bytes   int64
	unsaved map[StateKey]*state // that the store does not have yet
	waiting int64               // bytes of unsaved
	more    chan struct{}
	done    chan struct{}
	stopped chan struct{}
}

type state struct {
	key    StateKey
	data   []byte          // nil where the state is deleted
	writer serving.QueryID // query that made it; 0 when it was read from the store
}

// stateCost is the memory that a state takes besides its own bytes, in bytes.
const stateCost = 256

// retryInterval is the wait after the store has failed to write.
const retryInterval = time.Second

func newStates(store StateStore, most int, room int64, trouble func(error)) *states {
	s := &states{store: store, maxBytes: most, capacity: room, trouble: trouble, held: make(map[StateKey]*list.Element),
		unsaved: make(map[StateKey]*state),
		more:    make(chan struct{}, 1), done: make(chan struct{}), stopped: make(chan struct{})}
	if store == nil {
		close(s.stopped)
	} else {
		go s.write()
	}
	return s
}

// get returns a state that is in memory. known is false when only the store can tell.
func (s *states) get(key StateKey) (data []byte, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.held[key]; e != nil {
		s.recent.MoveToBack(e)
		return e.Value.(*state).data, true
	}
	return nil, s.store == nil
}

// load returns a state, from the store when it is not in memory.
func (s *states) load(key StateKey) ([]byte, error) {
	if data, known := s.get(key); known {
		return data, nil
	}
	data, err := s.store.Get(key)
	if err != nil {
		return nil, fmt.Errorf("state of stream %.64q at stage %q: %w", key.Stream, key.Stage, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[key] == nil {
		s.hold(&state{key: key, data: data})
	}
	return data, nil
}

// accepts returns why a state is not taken; nil when it is.
func (s *states) accepts(key StateKey, data []byte) error {
	if len(data) > s.maxBytes {
		return fmt.Errorf("stage %q keeps %d bytes of a stream, at most %d are taken (server.limits.state)", key.Stage,
			len(data), s.maxBytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting+int64(len(data)) > s.capacity {
		return fmt.Errorf("stage %q: %d bytes of states wait for the store, more are not taken: is it slow, or full?",
			key.Stage, s.waiting)
	}
	return nil
}

// put takes over the state that a query has made; nil deletes it. It does nothing when a later query has made a state
// already.
func (s *states) put(key StateKey, data []byte, by serving.QueryID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.held[key]; e != nil && e.Value.(*state).writer > by {
		return // the query ended long ago, and its batch ran on
	}
	x := &state{key: key, data: data, writer: by}
	s.hold(x)
	if s.store == nil {
		if data == nil {
			s.drop(s.held[key])
		}
		return
	}
	s.queue(x)
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// queue has a state written to the store. The caller holds s.mu.
func (s *states) queue(x *state) {
	if old := s.unsaved[x.key]; old != nil {
		s.waiting -= int64(len(old.data))
	}
	s.unsaved[x.key] = x
	s.waiting += int64(len(x.data))
}

// hold puts a state into memory. Above the capacity it drops states that the store has, the least recently used first.
// The caller holds s.mu.
func (s *states) hold(x *state) {
	if e := s.held[x.key]; e != nil {
		s.drop(e)
	}
	s.held[x.key] = s.recent.PushBack(x)
	s.bytes += int64(len(x.data)) + stateCost
	for e := s.recent.Front(); s.bytes > s.capacity && e != nil && e != s.recent.Back(); {
		next := e.Next()
		if s.unsaved[e.Value.(*state).key] == nil {
			s.drop(e)
		}
		e = next
	}
}

// drop removes a state from memory. The caller holds s.mu.
func (s *states) drop(e *list.Element) {
	x := e.Value.(*state)
	delete(s.held, x.key)
	s.recent.Remove(e)
	s.bytes -= int64(len(x.data)) + stateCost
}

// write is the goroutine that writes queued states to the store, all at once.
func (s *states) write() {
	defer close(s.stopped)
	for ending := false; !ending; {
		select {
		case <-s.more:
		case <-s.done:
			ending = true
		}
		for !s.flush() && !ending {
			select {
			case <-time.After(retryInterval):
			case <-s.done:
				ending = true
			}
		}
	}
}

// flush writes all queued states. It returns false when the store has failed; then they stay queued.
func (s *states) flush() (written bool) {
	s.mu.Lock()
	writing := make([]*state, 0, len(s.unsaved))
	batch := make(map[StateKey][]byte, len(s.unsaved))
	for key, x := range s.unsaved { // any order: they are written as one
		writing = append(writing, x)
		batch[key] = x.data
	}
	s.mu.Unlock()
	if len(batch) == 0 {
		return true
	}
	if err := s.store.Keep(batch); err != nil {
		s.trouble(fmt.Errorf("states of %d streams are not kept: %w", len(batch), err))
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range writing {
		if s.unsaved[x.key] == x { // else a newer one is queued
			delete(s.unsaved, x.key)
			s.waiting -= int64(len(x.data))
			if e := s.held[x.key]; x.data == nil && e != nil && e.Value.(*state) == x {
				s.drop(e)
			}
		}
	}
	return true
}

// close writes what is queued and returns when the goroutine has ended.
func (s *states) close() {
	close(s.done)
	<-s.stopped
}
