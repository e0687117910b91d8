package priced

import (
	"slices"
	"sort"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// place is a task that waits, with what a decision looks at again and again.
type place struct {
	ref      fleet.Ref
	query    serving.QueryID
	end, due serving.Time // by when its stage and its query must end
	// part is what it is worth, relative to a task of a query that has all its tasks before it, or, with an answer, to
	// one of a query of one item
	part float64
}

func newPlace(ref fleet.Ref, t *fleet.Task) place {
	return place{ref: ref, query: t.Query(), end: t.LatestEnd(), due: t.Due(), part: 1 / float64(t.Of())}
}

// left returns how many seconds the task's stage may still take.
func (x *place) left(now serving.Time) float64 { return x.end.Sub(now).Seconds() }

// dueIn returns after how many seconds its query is late.
func (x *place) dueIn(now serving.Time) float64 { return x.due.Sub(now).Seconds() }

// firstWith returns the position of the first task that has at least so many seconds left.
func firstWith(list []place, now serving.Time, seconds float64) int {
	if len(list) == 0 || list[0].left(now) >= seconds {
		return 0
	}
	return sort.Search(len(list), func(k int) bool { return list[k].left(now) >= seconds })
}

// row is the first tasks of a queue whose tasks differ in their deadlines only, in their order. It is kept from event
// to event: most change only the ends of a queue, and reading a task anew costs a miss in the processor's cache.
type row struct {
	memory         []place
	first          int  // of the tasks in memory that still wait
	late           int  // of those from there on that can no longer be in time
	mixed          bool // some task must end before one that is ahead of it
	timely         []place
	least          float64 // with which the late ones were found
	left, overtook uint64
}

// forget makes the row be read anew.
func (x *row) forget() { x.memory, x.first, x.late, x.mixed = x.memory[:0], 0, 0, false }

// follow takes up what has happened to a queue: tasks that left at its head, and those that came at its end. What else
// happens makes the row be read anew. It returns the tasks that have at least so many seconds left.
func (x *row) follow(f *fleet.View, q *fleet.Queue, now serving.Time, least float64) []place {
	left, overtook := q.Left()
	if least < x.least {
		x.forget()
	}
	x.least = least
	// If as many left as are before the task that is now the head, it was they that left.
	if gone := left - x.left; overtook != x.overtook || gone >= uint64(len(x.memory)-x.first) ||
		gone > 0 && x.memory[x.first+int(gone)].ref != q.Head() {
		x.forget()
	} else {
		x.first, x.late = x.first+int(gone), max(x.late-int(gone), 0)
	}
	x.left, x.overtook = left, overtook
	if x.first > mostTasks {
		x.memory, x.first = append(x.memory[:0], x.memory[x.first:]...), 0
	}
	for x.first+x.late < len(x.memory) && x.memory[x.first+x.late].left(now) < least {
		x.late++
	}
	ref := q.Head()
	if n := len(x.memory); n > 0 {
		ref = f.Next(x.memory[n-1].ref)
	}
	for ; ref != fleet.Nil && len(x.memory)-x.first-x.late < mostTasks; ref = f.Next(ref) {
		y := newPlace(ref, f.Task(ref))
		if n := len(x.memory); n > x.first && y.end < x.memory[n-1].end {
			x.mixed = true
		}
		if x.first+x.late == len(x.memory) && y.left(now) < least {
			x.late++
		}
		x.memory = append(x.memory, y)
	}
	if !x.mixed {
		return x.memory[x.first+x.late:]
	}
	x.timely = x.timely[:0]
	for _, y := range x.memory[x.first+x.late:] {
		if y.left(now) >= least {
			x.timely = append(x.timely, y)
		}
	}
	return x.timely
}

// take removes n tasks that leave the queue now, from the k-th that can be in time on.
func (x *row) take(k, n int) {
	if x.mixed {
		x.forget()
		return
	}
	from := x.first + x.late + k
	x.memory = slices.Delete(x.memory, from, from+n)
	x.left += uint64(n)
}
