package fleet

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Queue is a doubly linked list of tasks in the order priority, deadline, arrival. A task that sorts last is appended
// in constant time: every task, where objectives and priorities are uniform.
type Queue struct {
	head, tail  Ref
	n, items    int
	constrained int           // tasks with requirements of their own
	uneven      int           // tasks with other than one item, or with a length
	timed       int           // tasks with a timeout of their client's own
	takes       time.Duration // sum over the tasks, where queries run unbatched
	left        uint64        // tasks that were ever taken out
	overtook    uint64        // tasks that were ever put in before others

	earliest serving.Time // smallest DropAt, while known
	known    bool
}

func newQueue() Queue { return Queue{head: Nil, tail: Nil} }

// Len returns the number of tasks.
func (q *Queue) Len() int { return q.n }

// Items returns the sum of their items.
func (q *Queue) Items() int { return q.items }

// Head returns the first task, or Nil.
func (q *Queue) Head() Ref { return q.head }

// Tail returns the last task, or Nil.
func (q *Queue) Tail() Ref { return q.tail }

// Unconstrained reports whether no waiting task has requirements of its own.
func (q *Queue) Unconstrained() bool { return q.constrained == 0 }

// Timed reports whether a waiting task has a timeout of its client's own, so that tasks do not expire in their order.
func (q *Queue) Timed() bool { return q.timed > 0 }

// SingleItems reports whether every waiting task has exactly one item, and none a length.
func (q *Queue) SingleItems() bool { return q.uneven == 0 }

// Left returns how many tasks were ever taken out of the queue, and how many were put in before others instead of at
// the end. Who remembers a part of the queue tells from it what has changed.
func (q *Queue) Left() (left, overtook uint64) { return q.left, q.overtook }

func (f *Fleet) push(q *Queue, r Ref) {
	t := &f.tasks[r]
	after := q.tail
	for after != Nil && before(t, &f.tasks[after]) {
		after = f.tasks[after].prev
	}
	t.prev = after
	if after == Nil {
		t.next = q.head
		q.head = r
	} else {
		t.next = f.tasks[after].next
		f.tasks[after].next = r
	}
	if t.next == Nil {
		q.tail = r
	} else {
		f.tasks[t.next].prev = r
		q.overtook++
	}
	q.n++
	q.items += int(t.w.Items)
	q.takes += t.takes
	if t.constrained {
		q.constrained++
	}
	if t.w.Items != 1 || t.w.Length != 0 {
		q.uneven++
	}
	if t.timed() {
		q.timed++
	}
	if q.known && t.dropAt < q.earliest {
		q.earliest = t.dropAt
	}
}

func (f *Fleet) unlink(q *Queue, r Ref) {
	t := &f.tasks[r]
	if t.prev == Nil {
		q.head = t.next
	} else {
		f.tasks[t.prev].next = t.next
	}
	if t.next == Nil {
		q.tail = t.prev
	} else {
		f.tasks[t.next].prev = t.prev
	}
	t.next, t.prev = Nil, Nil
	q.n--
	q.left++
	q.items -= int(t.w.Items)
	q.takes -= t.takes
	if t.constrained {
		q.constrained--
	}
	if t.w.Items != 1 || t.w.Length != 0 {
		q.uneven--
	}
	if t.timed() {
		q.timed--
	}
	if q.known && t.dropAt <= q.earliest {
		q.known = false
	}
}

// EarliestDrop returns the smallest DropAt of the tasks in q, or serving.Never. Where tasks are alike it is the head's.
// A mixed queue is scanned once after its earliest task has left.
func (f *View) EarliestDrop(q *Queue) serving.Time {
	if q.n == 0 {
		return serving.Never
	}
	head := &f.tasks[q.head]
	if q.constrained == 0 && q.uneven == 0 && q.timed == 0 && head.rank == f.tasks[q.tail].rank {
		return head.dropAt
	}
	if !q.known {
		q.earliest, q.known = serving.Never, true
		for r := q.head; r != Nil; r = f.tasks[r].next {
			q.earliest = min(q.earliest, f.tasks[r].dropAt)
		}
	}
	return q.earliest
}

// Prefix returns how many of the first ready tasks of q fit into a batch of at most limit items, and the sum of their
// items. q must hold at least ready tasks.
func (f *View) Prefix(q *Queue, ready, limit int) (n, items int) {
	if q.uneven == 0 {
		n = min(ready, limit)
		return n, n
	}
	for r := q.head; n < ready; r = f.tasks[r].next {
		more := f.tasks[r].Items()
		if items+more > limit {
			break
		}
		items += more
		n++
	}
	return n, items
}

// Uniform reports whether all tasks of q have the same priority, so that the first has the earliest deadline.
func (f *View) Uniform(q *Queue) bool {
	return q.n == 0 || f.tasks[q.head].rank == f.tasks[q.tail].rank
}
