package provider

import (
	"context"
	"fmt"
	"time"
)

// Worker names a machine that is to be had.
type Worker struct {
	Name       string // in the configuration, unique in it
	DeviceType string // what kind of machine it is
	// Models that the first instance there runs, by their names on servers: a machine may have them when it is ready.
	// Later ones come with their loads.
	Models []string
}

// Machine is one that is ready: a server of the Open Inference Protocol over gRPC that loads and unloads models when
// asked.
type Machine struct {
	Address string        // HOST:PORT
	Started time.Duration // from being asked for to ready; 0 for one that was there already
}

// Supply gives machines to workers and takes them back. Its methods are safe for concurrent use. For one worker,
// Acquire and Release do not overlap.
type Supply interface {
	// Acquire returns the machine of a worker once it is ready. It takes one over that is there already. A call for a
	// machine that is held returns it again. Where no machine can be had for a while, it fails with an *Unavailable.
	// When ctx ends before, what was begun stays, for the next Acquire or Release.
	Acquire(ctx context.Context, w Worker) (Machine, error)
	// Release gives the machine of a worker back, ready or not. It does nothing for one that is not there.
	Release(ctx context.Context, w Worker) error
	// Watch calls f for everything that happens to machines from now on, one call at a time, until stop is called. f
	// returns soon. A supply has one watcher.
	Watch(f func(Event)) (stop func())
}

// Kind says what happened to a machine.
type Kind uint8

// The kinds of events.
const (
	// Leaving: the machine will be stopped soon, and still works: its work is to move.
	Leaving Kind = iota
	// Lost: the machine is gone with everything that ran on it. The worker's next Acquire has a new one.
	Lost
	// Staying: a machine that was to leave stays, or the worker's next Acquire can have one again.
	Staying
	// Missing: no machine can be had for the worker, for the time Within.
	Missing
)

var kindNames = [...]string{"leaving", "lost", "staying", "missing"}

// String returns the kind's name.
func (k Kind) String() string { return kindNames[k] }

// Event is something that happened to the machine of a worker.
type Event struct {
	Worker string
	Kind   Kind
	// Within is, of Leaving, the time until it is stopped, 0 where it is not known; of Missing, until when it is worth
	// another try.
	Within time.Duration
	Why    string // in words
}

// Unavailable says that no machine can be had for a worker now.
type Unavailable struct {
	Worker string
	Why    string        // in words
	For    time.Duration // until it is worth another try
}

// Error implements error.
func (u *Unavailable) Error() string {
	return fmt.Sprintf("no machine can be had for worker %q: %s; it is asked for again in %v at the earliest", u.Worker,
		u.Why, u.For)
}
