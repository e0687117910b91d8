package fleet

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// State is a phase in the life of an instance.
type State uint8

// An instance is launched, and ready once its first variant is warm. It drains when it is no longer wanted: tasks it
// holds are finished or handed back, and no new ones come. Then it is stopped. A lost one is stopped from any state.
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
	Wanted  bool // false once the plan has dropped it: it finishes its batches
	Delayed bool // its load waits for memory of the worker

	pinnedOnly bool // it is below its app's accuracy floor; the fleet sets it
}

// Usable reports whether the variant may get any work: it is warm, wanted, and not below its app's accuracy floor.
func (l Loaded) Usable() bool { return l.Warm && l.Wanted && !l.pinnedOnly }

// usableFor reports whether the variant may get some work: below its app's accuracy floor it runs only what is
// pinned to it.
func (l *Loaded) usableFor(w *Work) bool {
	return l.Warm && l.Wanted && (!l.pinnedOnly || w.Pin == l.Variant)
}

// Batch is tasks running together on an instance.
type Batch struct {
	ID       serving.BatchID
	Variant  serving.VariantID
	Items    int // sum over the tasks
	Tasks    int
	Head     Ref // first task; the others follow by Next
	Started  serving.Time
	Expected serving.Time // believed end
	// Concurrency is how many batches ran at the same time when it began, itself included.
	Concurrency int
	// Overlaps is set for batches of which one began beside the other (SetOverlap): how long they take says little
	// about batches that run alone, or together from beginning to end.
	Overlaps bool
	Delayed  time.Duration // by those, as believed
}

// Placement describes an instance at its launch.
type Placement struct {
	Key        Key
	DeviceType serving.DeviceTypeID
	Stage      serving.StageID
	// Built is how many batches it can run at once, at least Terms.Slots. Plans may raise Slots up to Built without a
	// load.
	Built int
	Cores int // threads of its own; 0 when it shares those of its worker
	// Accelerator is the index of the accelerator of its worker that it has a part of.
	Accelerator int32
	Variants    []Loaded // the first is loaded first
	Terms
}

// Terms are the attributes that a plan may change without a load.
type Terms struct {
	Slots        int           // batches that may run at once
	Share        float64       // of its stage's traffic, in [0, 1]
	BatchTimeout time.Duration // longest wait while a batch fills; 0 when not planned
	Low, Up      float64       // bounds of its rate in queries/s; 0 when not planned
	// TimeShared has it take turns with the other such instances on its worker: together they run no more batches at
	// once than the one with the most slots may.
	TimeShared bool
}

// Instance is one or more variants of a stage on a worker.
type Instance struct {
	id      serving.InstanceID
	p       Placement
	state   State
	active  int // index into p.Variants; see Active
	fastest int // index of the warm variant believed fastest for one item
	queue   Queue
	running []Batch
	choice  serving.VariantID

	wake      serving.Time
	launched  serving.Time
	busy      serving.Time // slot time spent in finished batches
	warmUntil serving.Time

	standby bool
	rest    serving.Time  // see Rest
	shared  *sharedWorker // nil for one with a part of its worker for itself
	overlap bool          // see SetOverlap

	counts  bool // it is counted among the kinds of its stage, as counted
	counted kind
}

// ID returns its number, from 1 in the order of launches.
func (i *Instance) ID() serving.InstanceID { return i.id }

// Key returns its place in the plan.
func (i *Instance) Key() Key { return i.p.Key }

// Worker returns where it runs.
func (i *Instance) Worker() serving.WorkerID { return i.p.Key.Worker }

// DeviceType returns the device type that latencies are known for: its worker's, or that of its part of the worker.
func (i *Instance) DeviceType() serving.DeviceTypeID { return i.p.DeviceType }

// Stage returns the stage that it serves.
func (i *Instance) Stage() serving.StageID { return i.p.Stage }

// State returns the phase of its life.
func (i *Instance) State() State { return i.state }

// Slots returns how many batches may run at once.
func (i *Instance) Slots() int { return i.p.Slots }

// Built returns how many batches it can run at once; see Placement.
func (i *Instance) Built() int { return i.p.Built }

// Cores returns the threads of its own; 0 when it shares those of its worker.
func (i *Instance) Cores() int { return i.p.Cores }

// Accelerator returns the index of the accelerator of its worker that it has a part of.
func (i *Instance) Accelerator() int32 { return i.p.Accelerator }

// Share returns its planned share of its stage's traffic, in [0, 1].
func (i *Instance) Share() float64 { return i.p.Share }

// BatchTimeout returns the longest planned wait while a batch fills; 0 when not planned.
func (i *Instance) BatchTimeout() time.Duration { return i.p.BatchTimeout }

// Band returns the bounds of its rate in queries/s; 0 when not planned.
func (i *Instance) Band() (low, up float64) { return i.p.Low, i.p.Up }

// Variants returns how many variants it has, loading and unwanted ones included.
func (i *Instance) Variants() int { return len(i.p.Variants) }

// Variant returns the k-th of its variants, from 0.
func (i *Instance) Variant(k int) Loaded { return i.p.Variants[k] }

// Active returns the index of the variant that is used unless a task needs another; -1 before any is warm.
func (i *Instance) Active() int { return i.active }

// Queue returns the queue of tasks that wait on it.
func (i *Instance) Queue() *Queue { return &i.queue }

// Running returns how many batches run on it.
func (i *Instance) Running() int { return len(i.running) }

// Batch returns a copy of the k-th of its running batches, from 0. Their order has no meaning.
func (i *Instance) Batch(k int) Batch { return i.running[k] }

// Choice returns the variant that the router has chosen for the tasks queued here; serving.None leaves it to the
// batcher.
func (i *Instance) Choice() serving.VariantID { return i.choice }

// Standby reports whether it is loaded and waits for its predecessor at the same place to finish.
func (i *Instance) Standby() bool { return i.standby }

// RestUntil returns until when a ready instance gets no tasks; 0 for one that gets them, serving.Never while nobody
// knows. It counts as coming, not as ready.
func (i *Instance) RestUntil() serving.Time { return i.rest }

// serves reports whether it gets tasks.
func (i *Instance) serves() bool { return i.state == Ready && i.rest == 0 }

// WarmUntil returns the end of its turn-off delay, in which it drains, stays loaded, and a plan may resume it; 0 for
// one that stops as soon as it is idle.
func (i *Instance) WarmUntil() serving.Time { return i.warmUntil }

// Wake returns when its batcher asked to be called again; serving.Never when it did not.
func (i *Instance) Wake() serving.Time { return i.wake }

// Launched returns when it was launched.
func (i *Instance) Launched() serving.Time { return i.launched }

// Busy returns the slot time that it has spent in finished batches.
func (i *Instance) Busy() serving.Time { return i.busy }

// FreeSlots returns how many more batches may start now. An instance that takes turns has none while the others on its
// worker use them up, nor has one that rests, unless its tasks may begin beside what runs (SetOverlap). It is negative
// when a plan has reduced slots below those in use.
func (i *Instance) FreeSlots() int {
	if i.state != Ready && i.state != Draining || i.rest > 0 {
		return 0
	}
	if i.overlap && i.RoomToOverlap() {
		return 1
	}
	free := i.p.Slots - len(i.running)
	if i.p.TimeShared && i.shared != nil {
		free = min(free, i.shared.level-i.shared.running)
	}
	return free
}

// Idle reports whether nothing runs and nothing waits on the instance.
func (i *Instance) Idle() bool { return len(i.running) == 0 && i.queue.n == 0 }

// Outstanding returns the number of tasks that wait or run on the instance.
func (i *Instance) Outstanding() int {
	n := i.queue.n
	for b := range i.running {
		n += i.running[b].Tasks
	}
	return n
}

// SharesWorker reports whether it has no part of its worker for itself: what runs on it, and on the other such
// instances there, shares all of the worker.
func (i *Instance) SharesWorker() bool { return i.shared != nil }

// TimeShared reports whether its batches take turns with those of the other such instances on its worker.
func (i *Instance) TimeShared() bool { return i.p.TimeShared && i.shared != nil }

// Find returns the index of v among its variants, or -1.
func (i *Instance) Find(v serving.VariantID) int {
	return slices.IndexFunc(i.p.Variants, func(l Loaded) bool { return l.Variant == v })
}

// Serves reports whether v is among its variants and usable.
func (i *Instance) Serves(v serving.VariantID) bool {
	k := i.Find(v)
	return k >= 0 && i.p.Variants[k].Usable()
}

// ServesPinned tells whether v is among its variants, and runs what is pinned to it. It need not be usable.
func (i *Instance) ServesPinned(v serving.VariantID) bool {
	k := i.Find(v)
	return k >= 0 && i.p.Variants[k].usableFor(&Work{Pin: v})
}

// Limit returns the batch limit, in items, of the active variant; 0 when none is warm.
func (i *Instance) Limit() int {
	if i.active < 0 {
		return 0
	}
	return i.p.Variants[i.active].Limit
}

// Uses reports whether a running batch uses v.
func (i *Instance) Uses(v serving.VariantID) bool {
	return slices.ContainsFunc(i.running, func(b Batch) bool { return b.Variant == v })
}
