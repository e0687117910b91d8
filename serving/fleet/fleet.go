package fleet

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Fleet is the whole state of what runs and what waits. It is owned by one engine and is not safe for concurrent use.
type Fleet struct {
	Spec    *serving.Spec
	Profile profile.Profile

	instances []*Instance   // by ID-1; nil once stopped
	live      []*Instance   // not stopped, ascending by ID
	serving   [][]*Instance // by stage: Ready, ascending by ID
	central   []Queue       // by stage: tasks not yet given to an instance
	turns     []Queue       // by stage: tasks that wait for their turn
	kinds     [][]kind      // by stage: distinct ways in which ready instances serve a task without requirements
	together  []int32       // by worker: batches that run on instances which share all of it

	// learns tells that latency is learned: a batch that has run for longer than was believed tells something.
	learns bool

	tasks     []Task
	freeTasks []Ref

	// Alone tells that queries run one at a time, never joined to a batch; set before anything waits. A queue's work is
	// then the sum of its queries' own.
	Alone bool

	// Epoch counts changes to which instances are ready, what they have loaded and their shares: rules that keep tables
	// by instance rebuild them when it moves.
	Epoch uint64
}

type kind struct {
	variant serving.VariantID
	device  serving.DeviceTypeID
}

// New returns an empty fleet over spec.
func New(spec *serving.Spec, p profile.Profile) *Fleet {
	f := &Fleet{
		Spec: spec, Profile: p, serving: make([][]*Instance, len(spec.Stages)),
		central: make([]Queue, len(spec.Stages)), turns: make([]Queue, len(spec.Stages)),
		kinds: make([][]kind, len(spec.Stages)),
	}
	for i := range f.central {
		f.central[i], f.turns[i] = newQueue(), newQueue()
	}
	_, f.learns = p.(profile.Learner)
	return f
}

// Grow takes up a spec that has grown, and what is believed of it.
func (f *Fleet) Grow(spec *serving.Spec, p profile.Profile) {
	f.Spec, f.Profile = spec, p
	for len(f.central) < len(spec.Stages) {
		f.serving, f.kinds = append(f.serving, nil), append(f.kinds, nil)
		f.central, f.turns = append(f.central, newQueue()), append(f.turns, newQueue())
	}
}

// Task returns the task behind r. The pointer is valid until the next task is made.
func (f *Fleet) Task(r Ref) *Task { return &f.tasks[r] }

// Central returns the queue of tasks of a stage that no instance has been given.
func (f *Fleet) Central(s serving.StageID) *Queue { return &f.central[s] }

// Turns returns the queue of tasks of a stage that wait for their turn.
func (f *Fleet) Turns(s serving.StageID) *Queue { return &f.turns[s] }

// Ready returns the ready instances of a stage, ascending by ID. The slice must not be kept or changed.
func (f *Fleet) Ready(s serving.StageID) []*Instance { return f.serving[s] }

// Live returns all instances that are not stopped, ascending by ID. The slice must not be kept or changed.
func (f *Fleet) Live() []*Instance { return f.live }

// Instance returns the instance with the given ID, or nil when it never existed or is stopped.
func (f *Fleet) Instance(id serving.InstanceID) *Instance {
	if id < 1 || int(id) > len(f.instances) {
		return nil
	}
	return f.instances[id-1]
}

// NewTask takes a task from the slab. It is in no place until it is put somewhere.
func (f *Fleet) NewTask(t Task) Ref {
	t.next, t.prev, t.sibling = Nil, Nil, Nil
	t.Place = Free
	t.Last = max(t.Last, t.Deadline)
	t.Special = t.Pin != serving.None || t.MinAccuracy > 0 || t.Solo || t.Patient > 0
	if n := len(f.freeTasks); n > 0 {
		r := f.freeTasks[n-1]
		f.freeTasks = f.freeTasks[:n-1]
		f.tasks[r] = t
		return r
	}
	f.tasks = append(f.tasks, t)
	return Ref(len(f.tasks) - 1)
}

// SetRank sets the priority order of a task that waits nowhere yet.
func (f *Fleet) SetRank(r Ref, rank int32) { f.tasks[r].rank = rank }

// FreeTask gives a task back to the slab.
func (f *Fleet) FreeTask(r Ref) {
	f.tasks[r] = Task{Place: Free, next: Nil, prev: Nil, sibling: Nil}
	f.freeTasks = append(f.freeTasks, r)
}

// Sibling and SetSibling chain the tasks of one query.
func (f *Fleet) Sibling(r Ref) Ref { return f.tasks[r].sibling }

// SetSibling sets the next task of the same query.
func (f *Fleet) SetSibling(r, next Ref) { f.tasks[r].sibling = next }

// Wait puts a task into its stage's central queue.
func (f *Fleet) Wait(r Ref) { f.wait(r, Central, f.central) }

// WaitTurn puts a task where it waits for its turn at its stage.
func (f *Fleet) WaitTurn(r Ref) { f.wait(r, Turn, f.turns) }

func (f *Fleet) wait(r Ref, p Place, at []Queue) {
	t := &f.tasks[r]
	t.Place, t.Instance, t.work = p, 0, 0
	t.DropAt = f.centralDrop(t)
	f.push(&at[t.Stage], r)
}

// queue returns where a task waits; nil for one that does not.
func (f *Fleet) queue(t *Task) *Queue {
	switch t.Place {
	case Turn:
		return &f.turns[t.Stage]
	case Central:
		return &f.central[t.Stage]
	case Queued:
		return &f.instances[t.Instance-1].Queue
	}
	return nil
}

// centralDrop is the latest start that the fastest ready instance could still make; with no instance that may serve the
// task, its deadline. One that waits for a start has as long as that may take, and no longer while nothing is ready:
// perhaps nothing ever will be.
func (f *Fleet) centralDrop(t *Task) serving.Time {
	if app := f.app(t); app.Late == serving.ServeLate {
		if t.Patient > 0 && len(f.serving[t.Stage]) == 0 {
			return t.Patient
		}
		return max(patience(app, t), t.Patient)
	}
	return max(f.inTime(t), t.Patient)
}

// inTime is the latest start that the fastest ready instance could still make.
func (f *Fleet) inTime(t *Task) serving.Time {
	if t.Try {
		return t.Last
	}
	best := profile.Unknown
	if t.Special {
		for _, i := range f.serving[t.Stage] {
			best = min(best, f.Fastest(i, t))
		}
	} else {
		for _, k := range f.kinds[t.Stage] {
			best = min(best, f.Profile.Latency(k.variant, k.device, int(t.Items), 1))
		}
	}
	if best == profile.Unknown {
		return t.Last
	}
	return t.Last.Add(-best)
}

// Give moves a task from its stage's central queue to the queue of an instance.
func (f *Fleet) Give(r Ref, to *Instance, now serving.Time) {
	t := &f.tasks[r]
	f.unlink(&f.central[t.Stage], r)
	t.Place, t.Instance, t.Queued = Queued, to.ID, now
	if t.work = 0; f.Alone {
		t.work = f.work(to, int(t.Items))
	}
	t.DropAt = f.instanceDrop(to, t)
	f.push(&to.Queue, r)
}

func (f *Fleet) app(t *Task) *serving.App { return &f.Spec.Apps[f.Spec.Stages[t.Stage].App] }

// patience is the latest start of a task whose app serves late.
func patience(app *serving.App, t *Task) serving.Time {
	if app.GiveUp <= 0 {
		return serving.Never
	}
	return t.Deadline.Add(app.GiveUp)
}

func (f *Fleet) instanceDrop(i *Instance, t *Task) serving.Time {
	if app := f.app(t); app.Late == serving.ServeLate {
		return max(patience(app, t), t.Patient)
	}
	l := f.Fastest(i, t)
	if l == profile.Unknown || t.Try {
		return max(t.Last, t.Patient)
	}
	return max(t.Last.Add(-l), t.Patient)
}

// Try lets a task that waits start until its deadline, whatever is believed of how long it takes.
func (f *Fleet) Try(r Ref) {
	t := &f.tasks[r]
	t.Try, t.DropAt = true, max(t.Last, t.Patient)
	f.queue(t).known = false
}

// Take removes a task from the queue where it waits; it is then in no place.
func (f *Fleet) Take(r Ref) {
	t := &f.tasks[r]
	q := f.queue(t)
	if q == nil {
		panic(fmt.Sprintf("fleet: task of query %d does not wait", t.Query))
	}
	f.unlink(q, r)
	t.Place = Free
}

// Start moves the first n tasks of an instance's queue into a new running batch.
func (f *Fleet) Start(i *Instance, id serving.BatchID, v serving.VariantID, n int, now serving.Time,
	expected time.Duration) *Batch {
	b := Batch{
		ID: id, Variant: v, Head: Nil, Started: now, Expected: now.Add(expected), AtOnce: f.AtOnce(i) + 1, Tasks: n,
	}
	last := Nil
	for range n {
		r := i.Queue.head
		f.unlink(&i.Queue, r)
		t := &f.tasks[r]
		t.Place = Running
		b.Items += int(t.Items)
		if last == Nil {
			b.Head = r
		} else {
			f.tasks[last].next = r
		}
		last = r
	}
	i.Running = append(i.Running, b)
	f.running(i, 1)
	return &i.Running[len(i.Running)-1]
}

// Finish takes a running batch off an instance and returns it; ok is false when it does not run there. Its tasks are
// then in no place; they follow each other by Next until they are put elsewhere or freed.
func (f *Fleet) Finish(i *Instance, id serving.BatchID, now serving.Time) (b Batch, ok bool) {
	for at := range i.Running {
		if i.Running[at].ID != id {
			continue
		}
		b = i.Running[at]
		i.Running = append(i.Running[:at], i.Running[at+1:]...)
		f.running(i, -1)
		i.Busy += now - b.Started
		for r := b.Head; r != Nil; r = f.tasks[r].next {
			f.tasks[r].Place = Free
		}
		return b, true
	}
	return Batch{}, false
}

// Fastest returns the least time in which instance i is believed to serve t, over the warm variants t accepts;
// profile.Unknown when there is none.
func (f *Fleet) Fastest(i *Instance, t *Task) time.Duration {
	if t.Pin == serving.None && t.MinAccuracy == 0 {
		if i.fastest < 0 {
			return profile.Unknown
		}
		return f.Profile.Latency(i.Variants[i.fastest].Variant, i.DeviceType, int(t.Items), 1)
	}
	best := profile.Unknown
	for v := range i.Variants {
		if l := &i.Variants[v]; l.Warm && l.Wanted && f.Accepts(t, l.Variant) {
			best = min(best, f.Profile.Latency(l.Variant, i.DeviceType, int(t.Items), 1))
		}
	}
	return best
}

// Accepts tells whether variant v meets the requirements of t.
func (f *Fleet) Accepts(t *Task, v serving.VariantID) bool {
	if !t.Special {
		return true
	}
	return (t.Pin == serving.None || t.Pin == v) && f.Spec.Variants[v].Accuracy >= t.MinAccuracy
}

// Choose returns the index into i.Variants of the variant to use for t unless a batcher knows better: the active one
// where it meets t's requirements, else the believed fastest that does; -1 when none may serve it.
func (f *Fleet) Choose(i *Instance, t *Task) int {
	fits := func(l *Loaded) bool { return l.Warm && l.Wanted && f.Accepts(t, l.Variant) && int(t.Items) <= l.Limit }
	if i.Active >= 0 && fits(&i.Variants[i.Active]) {
		return i.Active
	}
	best, at := profile.Unknown, -1
	for v := range i.Variants {
		if l := &i.Variants[v]; fits(l) {
			if d := f.Profile.Latency(l.Variant, i.DeviceType, int(t.Items), 1); at < 0 || d < best {
				best, at = d, v
			}
		}
	}
	return at
}

// CanServe tells whether ready instance i may be given t.
func (f *Fleet) CanServe(i *Instance, t *Task) bool {
	if !t.Special && i.Active >= 0 && int(t.Items) <= i.Variants[i.Active].Limit {
		return true
	}
	return f.Choose(i, t) >= 0
}

// Backlog returns the believed time until everything that runs and waits on i is done, were nothing else to come:
// queued items run in full batches of the active variant, or each query on its own where queries run alone; slots work
// in parallel, beside what runs on other instances that share the worker. extra is the items of one more query.
func (f *Fleet) Backlog(i *Instance, now serving.Time, extra int) time.Duration {
	free := serving.Never
	if len(i.Running) < i.Slots {
		free = now
	}
	for b := range i.Running {
		end := max(now, i.Running[b].Expected)
		if f.learns && end == now {
			// Believed to have ended, and has not: as long again. Else an instance of which nothing is known, whose
			// batches are believed to be short, would be given everything until the first of them ends.
			end = now.Add(now.Sub(i.Running[b].Started))
		}
		free = min(free, end)
	}
	wait := free.Sub(now)
	limit := i.Limit()
	if limit < 1 {
		return profile.Unknown
	}
	if f.Alone {
		work := i.Queue.work
		if extra > 0 {
			work += f.work(i, extra)
		}
		return wait + work/time.Duration(max(i.Slots, 1))
	}
	items := i.Queue.items + extra
	v, atOnce := i.Variants[i.Active].Variant, i.Slots+f.AtOnce(i)-len(i.Running)
	var work time.Duration
	if full := items / limit; full > 0 {
		work = time.Duration(full) * f.Profile.Latency(v, i.DeviceType, limit, atOnce)
	}
	if rest := items % limit; rest > 0 {
		work += f.Profile.Latency(v, i.DeviceType, rest, atOnce)
	}
	return wait + work/time.Duration(max(i.Slots, 1))
}

// work is the believed time of a query of so many items on its own, on the active variant, while all slots work.
func (f *Fleet) work(i *Instance, items int) time.Duration {
	if i.Active < 0 {
		return 0
	}
	return min(f.Profile.Latency(i.Variants[i.Active].Variant, i.DeviceType, items, i.Slots), longest)
}

// longest bounds the work of a query, so that a sum over a queue of what was never measured does not overflow.
const longest = 10 * time.Hour
