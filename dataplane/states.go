package dataplane

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// StateStore keeps what stateful stages know of their streams, beyond the life of a plane. It is called by several
// goroutines.
type StateStore interface {
	// Get returns a state, nil when there is none. The plane does not change it.
	Get(StateKey) ([]byte, error)
	// Keep writes states, all or none of them; a nil state is deleted. The states must not be kept or changed. A store
	// that is full forgets those that were written longest ago.
	Keep(map[StateKey][]byte) error
}

// StateKey says whose a state is, by the names that outlive a run.
type StateKey struct{ App, Stage, Stream string }

// states holds the states of streams in memory and writes them to the store behind the queries' backs: an answer does
// not wait for the disk, and what was not written yet is lost with the process, though not with an instance or a
// worker.
type states struct {
	store   StateStore // nil: memory alone
	most    int        // bytes of one
	room    int64      // bytes of all that are held
	trouble func(error)

	mu      sync.Mutex
	held    map[StateKey]*list.Element // of *state
	recent  list.List                  // of all of them, the longest unused in front
	bytes   int64
	unsaved map[StateKey]*state // to be written
	waiting int64               // bytes of unsaved
	more    chan struct{}
	done    chan struct{}
	over    chan struct{}
}

type state struct {
	key    StateKey
	data   []byte          // nil: forgotten
	writer serving.QueryID // 0 when it was read from the store
}

// stateCost is what a state takes besides its bytes.
const stateCost = 256

// again is the wait after the store has refused a write.
const again = time.Second

func newStates(store StateStore, most int, room int64, trouble func(error)) *states {
	s := &states{store: store, most: most, room: room, trouble: trouble, held: make(map[StateKey]*list.Element),
		unsaved: make(map[StateKey]*state),
		more:    make(chan struct{}, 1), done: make(chan struct{}), over: make(chan struct{})}
	if store == nil {
		close(s.over)
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

// accepts tells what keeps a state from being taken.
func (s *states) accepts(key StateKey, data []byte) error {
	if len(data) > s.most {
		return fmt.Errorf("stage %q keeps %d bytes of a stream, at most %d are taken (server.limits.state)", key.Stage,
			len(data), s.most)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting+int64(len(data)) > s.room {
		return fmt.Errorf("stage %q: %d bytes of states wait for the store, more are not taken: is it slow, or full?",
			key.Stage, s.waiting)
	}
	return nil
}

// put takes over a state that a query has made, unless a later query has made one; nil forgets it.
func (s *states) put(key StateKey, data []byte, by serving.QueryID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.held[key]; e != nil && e.Value.(*state).writer > by {
		return // of a query that ended long ago, and ran on
	}
	x := &state{key: key, data: data, writer: by}
	s.hold(x)
	if s.store == nil {
		if data == nil {
			s.drop(s.held[key])
		}
		return
	}
	s.await(x)
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// await marks a state as one that the store has not got. mu is held.
func (s *states) await(x *state) {
	if old := s.unsaved[x.key]; old != nil {
		s.waiting -= int64(len(old.data))
	}
	s.unsaved[x.key] = x
	s.waiting += int64(len(x.data))
}

// hold puts a state into memory, and lets go of those that were not used for longest and that the store has. mu is
// held.
func (s *states) hold(x *state) {
	if e := s.held[x.key]; e != nil {
		s.drop(e)
	}
	s.held[x.key] = s.recent.PushBack(x)
	s.bytes += int64(len(x.data)) + stateCost
	for e := s.recent.Front(); s.bytes > s.room && e != nil && e != s.recent.Back(); {
		next := e.Next()
		if s.unsaved[e.Value.(*state).key] == nil {
			s.drop(e)
		}
		e = next
	}
}

func (s *states) drop(e *list.Element) {
	x := e.Value.(*state)
	delete(s.held, x.key)
	s.recent.Remove(e)
	s.bytes -= int64(len(x.data)) + stateCost
}

// write is the goroutine that brings states to the store, all that wait at once.
func (s *states) write() {
	defer close(s.over)
	for ending := false; !ending; {
		select {
		case <-s.more:
		case <-s.done:
			ending = true
		}
		for !s.flush() && !ending {
			select {
			case <-time.After(again):
			case <-s.done:
				ending = true
			}
		}
	}
}

func (s *states) flush() (written bool) {
	s.mu.Lock()
	writing := make([]*state, 0, len(s.unsaved))
	batch := make(map[StateKey][]byte, len(s.unsaved))
	for key, x := range s.unsaved { // any order: writing is a set
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
		if s.unsaved[x.key] == x { // and no newer one
			delete(s.unsaved, x.key)
			s.waiting -= int64(len(x.data))
			if e := s.held[x.key]; x.data == nil && e != nil && e.Value.(*state) == x {
				s.drop(e)
			}
		}
	}
	return true
}

// close writes what is left and returns when nothing of it runs any more.
func (s *states) close() {
	close(s.done)
	<-s.over
}
