package fleet

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// State is where an instance stands in its life.
type State uint8

// An instance is launched, becomes ready when its first variant is warm, drains when it is no longer wanted (what it
// holds is finished or handed back, nothing new comes), and is then stopped; a lost one goes from any state at once.
const (
	Launching State = iota
	Ready
	Draining
	Stopped
)

var stateNames = [...]string{"launching", "ready", "draining", "stopped"}

// String returns the state's name.
func (s State) String() string { return stateNames[s] }

// Key identifies an instance across plans: its worker and its number there (plan.Instance.Place).
type Key struct {
	Worker  serving.WorkerID
	Ordinal int32
}

// Loaded is a variant on an instance.
type Loaded struct {
	Variant serving.VariantID
	Limit   int  // items of the largest batch to run
	Warm    bool // false while it loads
	Wanted  bool // false once the plan has dropped it and it only finishes
	Delayed bool // not ordered yet: the worker's memory is still taken
}

// Batch is queries running together on an instance.
type Batch struct {
	ID       serving.BatchID
	Variant  serving.VariantID
	Items    int
	Tasks    int
	Head     Ref // first task; the others follow by Next
	Started  serving.Time
	Expected serving.Time // believed end
	AtOnce   int          // what AtOnce was when it began, itself included
}

// Instance is one or more variants of a stage on a worker.
type Instance struct {
	ID         serving.InstanceID
	Key        Key
	DeviceType serving.DeviceTypeID
	Stage      serving.StageID
	State      State
	Slots      int // batches that may run at once
	Built      int // batches that could: what it was launched with, at least Slots; a plan may change Slots up to there
	Cores      int
	// Accelerator says which of its worker's accelerators it has a part of, from 0.
	Accelerator int32
	Share       float64       // of its stage's traffic, as planned
	Hold        time.Duration // longest wait of a batch being filled, for batchers that want one; 0 when not planned
	// queries/s between which it is to be sent, for routers that want that; 0 when not planned
	Low, Up float64

	Variants []Loaded
	Active   int // index into Variants of the variant used unless a query needs another; -1 before any is warm

	// Held tells that a launching instance is loaded and waits for its predecessor at the same place to finish.
	Held bool

	// Kept is until when a draining instance stays loaded, to be taken up again; 0 for one that goes when it is idle.
	Kept serving.Time

	// Choice is the variant on which the router wants what it has queued here to run; serving.None leaves it to the
	// batcher.
	Choice serving.VariantID

	Queue   Queue
	Running []Batch

	Wake     serving.Time // when its batcher asked to be called again
	Launched serving.Time
	Busy     serving.Time // slot time spent in finished batches
	fastest  int          // index of the warm variant believed fastest for one item
	shares   bool         // all of its worker, with every other such instance there
}

// FreeSlots returns how many more batches may start now.
func (i *Instance) FreeSlots() int {
	if i.State != Ready && i.State != Draining {
		return 0
	}
	return i.Slots - len(i.Running)
}

// Idle tells whether nothing runs and nothing waits on the instance.
func (i *Instance) Idle() bool { return len(i.Running) == 0 && i.Queue.n == 0 }

// Outstanding returns the tasks that wait or run on the instance.
func (i *Instance) Outstanding() int {
	n := i.Queue.n
	for b := range i.Running {
		n += i.Running[b].Tasks
	}
	return n
}

// Find returns the index of v in Variants, or -1.
func (i *Instance) Find(v serving.VariantID) int {
	return slices.IndexFunc(i.Variants, func(l Loaded) bool { return l.Variant == v })
}

// Limit returns the batch limit, in items, of the active variant; 0 when none is warm.
func (i *Instance) Limit() int {
	if i.Active < 0 {
		return 0
	}
	return i.Variants[i.Active].Limit
}

// Using tells whether a running batch uses v.
func (i *Instance) Using(v serving.VariantID) bool {
	return slices.ContainsFunc(i.Running, func(b Batch) bool { return b.Variant == v })
}
