package engine

import "github.com/sluice-serving/sluice/policy/route"

// Watch has f called, within Step, with what the router compares whenever it gives a batch to an instance; nil for
// nobody. f must not keep what it is given and must not call the engine. It changes no decision. Watch returns false
// where the router does not say what it compares.
func (e *Engine) Watch(f func(*route.Weighing)) bool {
	r, ok := e.dispatch.router.(route.Watched)
	if ok {
		r.Watch(f)
	}
	return ok
}
