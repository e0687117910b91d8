package fleet

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Wait puts a task that is in no place into its stage's central queue.
func (f *Fleet) Wait(r Ref) { f.wait(r, Central, f.central) }

// WaitTurn puts a task that is in no place into the queue of those that wait for their turn at its stage.
func (f *Fleet) WaitTurn(r Ref) { f.wait(r, Turn, f.turns) }

func (f *Fleet) wait(r Ref, p Place, at []Queue) {
	t := &f.tasks[r]
	t.place, t.holder, t.takes = p, 0, 0
	t.dropAt = f.centralDrop(t)
	f.push(&at[t.w.Stage], r)
}

// TakeTurn moves a task that waits for its turn to its stage's central queue.
func (f *Fleet) TakeTurn(r Ref, now serving.Time) {
	f.tasks[r].turnAt = now
	f.Dequeue(r)
	f.Wait(r)
}

// Assign moves a task from its stage's central queue to the queue of an instance of that stage.
func (f *Fleet) Assign(r Ref, to *Instance, now serving.Time) {
	t := &f.tasks[r]
	f.unlink(&f.central[t.w.Stage], r)
	t.place, t.holder, t.queued = Queued, to.id, now
	if t.takes = 0; f.unbatched {
		t.takes = f.takesAlone(to, &t.w)
	}
	t.dropAt = f.instanceDrop(to, t)
	f.push(&to.queue, r)
}

// SetChoice records the variant that the router has chosen for the tasks that it queues on an instance; serving.None
// leaves it to the batcher.
func (f *Fleet) SetChoice(i *Instance, v serving.VariantID) { i.choice = v }

// Dequeue removes a waiting task from its queue. It is then in no place. It panics when the task does not wait.
func (f *Fleet) Dequeue(r Ref) {
	t := &f.tasks[r]
	q := f.queue(t)
	if q == nil {
		panic(fmt.Sprintf("fleet: task of query %d does not wait", t.w.Query))
	}
	f.unlink(q, r)
	if t.place == Queued && q.n == 0 {
		f.instances[t.holder-1].overlap = false
	}
	t.place = Free
}

// queue returns the queue in which a task waits; nil for one that does not wait.
func (f *View) queue(t *Task) *Queue {
	switch t.place {
	case Turn:
		return &f.turns[t.w.Stage]
	case Central:
		return &f.central[t.w.Stage]
	case Queued:
		return &f.instances[t.holder-1].queue
	}
	return nil
}

// Start moves the first n tasks of an instance's queue into a new running batch of variant v with the believed run time
// expected. n must be in [1, length of the queue]. It returns a copy of the batch.
func (f *Fleet) Start(i *Instance, id serving.BatchID, v serving.VariantID, n int, now serving.Time,
	expected time.Duration) Batch {
	b := Batch{
		ID: id, Variant: v, Head: Nil, Started: now, Expected: now.Add(expected), Concurrency: f.Concurrency(i) + 1,
		Tasks: n,
	}
	last := Nil
	for range n {
		r := i.queue.head
		f.unlink(&i.queue, r)
		t := &f.tasks[r]
		t.place = Running
		b.Items += t.Items()
		if last == Nil {
			b.Head = r
		} else {
			f.tasks[last].next = r
		}
		last = r
	}
	if i.overlap && i.RoomToOverlap() {
		f.overlap(i, &b, now)
	}
	i.overlap = false
	i.running = append(i.running, b)
	i.countBatch(1)
	return b
}

// Finish removes a running batch from an instance and returns it; ok is false when it does not run there. Its tasks are
// then in no place. They follow each other by Next until they are put elsewhere or released.
func (f *Fleet) Finish(i *Instance, id serving.BatchID, now serving.Time) (b Batch, ok bool) {
	for at := range i.running {
		if i.running[at].ID != id {
			continue
		}
		b = i.running[at]
		i.running = append(i.running[:at], i.running[at+1:]...)
		i.countBatch(-1)
		i.busy += max(now-b.Started-serving.Time(b.Delayed), 0)
		for r := b.Head; r != Nil; r = f.tasks[r].next {
			f.tasks[r].place = Free
		}
		return b, true
	}
	return Batch{}, false
}
