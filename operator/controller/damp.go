package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// How often the cells of a fleet are given another configuration. Each costs a dispatcher a plan and a run beside the
// one before, so that where many resources come one after another they are taken together.
const (
	dampFirst = 500 * time.Millisecond // after the first
	dampMost  = 10 * time.Second
	dampEnds  = 30 * time.Second // without a change, the next one is taken at once again
)

// damper says when the cells of a fleet may be written. The time between two writes doubles as long as changes go on.
type damper struct {
	mu     sync.Mutex
	fleets map[types.NamespacedName]damped
}

type damped struct {
	wrote time.Time
	pause time.Duration
}

// wait is how long to wait before the cells are written; 0 to write now.
func (d *damper) wait(fleet types.NamespacedName, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.fleets[fleet]
	return max(x.wrote.Add(x.pause).Sub(now), 0)
}

// wrote notes that cells were written.
func (d *damper) wrote(fleet types.NamespacedName, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.fleets[fleet]
	if now.Sub(x.wrote) > dampEnds {
		x.pause = dampFirst
	} else {
		x.pause = min(2*x.pause, dampMost)
	}
	x.wrote = now
	if d.fleets == nil {
		d.fleets = make(map[types.NamespacedName]damped)
	}
	d.fleets[fleet] = x
}

// forget drops what is known of a fleet.
func (d *damper) forget(fleet types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.fleets, fleet)
}
