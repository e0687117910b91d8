package provider

import "sync"

// Watcher is the part of a Supply that tells of events. Its zero value has nobody to tell.
type Watcher struct {
	mu      sync.Mutex
	f       func(Event)
	telling sync.Mutex // held while f is called
}

// Watch is as in Supply.
func (w *Watcher) Watch(f func(Event)) (stop func()) {
	w.set(f)
	return func() {
		w.set(nil)
		w.telling.Lock() // a call that is under way ends first
		defer w.telling.Unlock()
	}
}

func (w *Watcher) set(f func(Event)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.f = f
}

// Tell calls who watches and reports whether anybody does. The caller holds no lock that a watcher may need.
func (w *Watcher) Tell(e Event) bool {
	w.telling.Lock()
	defer w.telling.Unlock()
	w.mu.Lock()
	f := w.f
	w.mu.Unlock()
	if f != nil {
		f(e)
	}
	return f != nil
}
