// Package fleet holds the state of what runs: instances with their life cycle, slots and queues, and the tasks that
// wait or run, each in exactly one place. It records and decides nothing.
//
// A View reads a fleet and a Fleet changes it. Rules get a View; an engine owns the Fleet.
package fleet

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Ref names a record of a slab, Nil none. A Ref is valid until its record is freed.
type Ref int32

// Nil is the Ref of nothing.
const Nil Ref = -1

// View reads a fleet. It shows every change of the Fleet around it. It is not safe for concurrent use.
type View struct {
	spec    *serving.Spec
	profile profile.Profile
	lengths *profile.ByLength // profile, where lengths count; else nil
	runs    []serving.Run     // memory of BatchLatency

	instances []*Instance     // by ID-1; nil once stopped
	live      []*Instance     // not stopped, ascending by ID
	ready     [][]*Instance   // by stage, ascending by ID
	central   []Queue         // by stage: tasks that no instance has
	turns     []Queue         // by stage: tasks that wait for their turn in their stream
	kinds     [][]countedKind // by stage: distinct kinds of its ready instances
	shared    []*sharedWorker // by worker: the instances that share all of it

	tasks     []Task
	freeTasks []Ref

	doubted   []bool // by variant: its confidences are not as measured; may be shorter
	learns    bool   // latency is learned, so that overdue batches correct beliefs
	unbatched bool
	epoch     uint64
	changes   uint64
}

// Fleet is a View that can be changed. One engine owns it.
type Fleet struct{ View }

// New returns an empty fleet. It keeps spec and p and does not change them.
func New(spec *serving.Spec, p profile.Profile) *Fleet {
	n := len(spec.Stages)
	f := &Fleet{View{
		spec: spec, profile: p, ready: make([][]*Instance, n), central: make([]Queue, n), turns: make([]Queue, n),
		kinds: make([][]countedKind, n), learns: p.Learner() != nil,
	}}
	f.SetProfile(p)
	for s := range f.central {
		f.central[s], f.turns[s] = newQueue(), newQueue()
	}
	return f
}

// SetUnbatched makes the time of a queue the sum of its queries' own times: queries run one at a time and are never
// joined to a batch. It must be called before any task waits.
func (f *Fleet) SetUnbatched() { f.unbatched = true }

// Grow replaces spec by one that has grown. Nothing runs or waits at its fresh stages. SetProfile must follow with a
// profile of it.
func (f *Fleet) Grow(spec *serving.Spec, fresh []serving.StageID) {
	f.spec = spec
	f.changes++
	empty := func(serving.StageID) Queue { return newQueue() }
	f.ready, f.kinds = serving.Cleared(f.ready, fresh), serving.Cleared(f.kinds, fresh)
	f.central, f.turns = serving.Renew(f.central, fresh, empty), serving.Renew(f.turns, fresh, empty)
}

// SetProfile replaces the beliefs about latency. ProfileChanged must follow.
func (f *Fleet) SetProfile(p profile.Profile) {
	f.profile = p
	f.lengths, _ = p.(*profile.ByLength)
}

// Spec returns the tables that the fleet serves. They must not be changed.
func (f *View) Spec() *serving.Spec { return f.spec }

// Doubt says whether the confidences of a variant have become others than those that were measured.
func (f *Fleet) Doubt(v serving.VariantID, doubted bool) {
	if int(v) >= len(f.doubted) {
		if !doubted {
			return
		}
		f.doubted = append(f.doubted, make([]bool, int(v)+1-len(f.doubted))...)
	}
	f.doubted[v] = doubted
}

// Doubts reports whether confidences of a variant say nothing now, since they are not as measured.
func (f *View) Doubts(v serving.VariantID) bool { return int(v) < len(f.doubted) && f.doubted[v] }

// Epoch counts changes of which instances are ready, of their loaded variants and of their shares. Rules with tables by
// instance rebuild them when it changes.
func (f *View) Epoch() uint64 { return f.epoch }

// Changes counts what Epoch counts, less what follows from beliefs: while it stays, the same variants are ready.
func (f *View) Changes() uint64 { return f.changes }

// Task returns the task of r. The pointer is valid until the next task is added.
func (f *View) Task(r Ref) *Task { return &f.tasks[r] }

// Central returns the queue of a stage's tasks that no instance has.
func (f *View) Central(s serving.StageID) *Queue { return &f.central[s] }

// AwaitingTurn returns the queue of a stage's tasks that wait for their turn in their stream.
func (f *View) AwaitingTurn(s serving.StageID) *Queue { return &f.turns[s] }

// Ready returns the ready instances of a stage, ascending by ID. The slice is the fleet's own: it must not be changed,
// nor kept beyond the present call.
func (f *View) Ready(s serving.StageID) []*Instance { return f.ready[s] }

// Live returns all instances that are not stopped, ascending by ID. The slice is the fleet's own: it must not be
// changed, nor kept beyond the next launch or removal.
func (f *View) Live() []*Instance { return f.live }

// Instance returns the instance with an ID, or nil when it never existed or is stopped.
func (f *View) Instance(id serving.InstanceID) *Instance {
	if id < 1 || int(id) > len(f.instances) {
		return nil
	}
	return f.instances[id-1]
}

// Next returns the task after r in its queue or batch, or Nil.
func (f *View) Next(r Ref) Ref { return f.tasks[r].next }

// Previous returns the task before r in its queue, or Nil.
func (f *View) Previous(r Ref) Ref { return f.tasks[r].prev }

// Sibling returns the next task of the same query, in the order in which SetSibling chained them, or Nil.
func (f *View) Sibling(r Ref) Ref { return f.tasks[r].sibling }

// Latency returns the believed time of a batch of items of variant v on device type d while concurrency batches run
// there, this one included; profile.Unknown when there is no belief. Where lengths count, it is that of items of the
// mean length.
func (f *View) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	return f.profile.Latency(v, d, items, concurrency)
}

// LoadTime returns the believed time to load variant v on device type d; 0 when there is no belief.
func (f *View) LoadTime(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	return f.profile.Load(v, d)
}

// app returns the app that work belongs to.
func (f *View) app(w *Work) *serving.App { return &f.spec.Apps[f.spec.Stages[w.Stage].App] }
