package engine

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// record is an accepted query, until its last task is released.
type record struct {
	query     serving.Query
	first     fleet.Ref // its tasks, chained by Sibling
	tasks     int
	flow      int32 // into flows; -1 for apps of one stage
	ended     bool  // its outcome is decided; running tasks may go on
	missed    bool  // its objective
	accuracy  float64
	machine   time.Duration // of its batches that have ended: of each its part by items
	certain   bool          // accuracy is that of answers of the confidence of its first, which is sure
	sure      float32
	kept      answer       // there while a better one is waited for; its batch is 0 without
	again     bool         // it, or some of its items, was answered again
	coldUntil serving.Time // of its tasks, after one found nothing ready; see fleet.Work
	stream    int32        // into streams; -1 where no stage keeps the stream's order
	before    fleet.Ref    // its neighbours there
	after     fleet.Ref
	share     share
}

var noRecord = record{first: fleet.Nil, flow: -1, accuracy: 1, stream: -1}

// records holds the accepted queries and their tasks.
type records struct {
	*world
	list []record // by fleet.Ref
	free []fleet.Ref
	ids  table // of those that have not ended
}

func newRecords(w *world) *records { return &records{world: w, ids: newTable()} }

// at returns a record. The pointer is valid until the next one is opened.
func (t *records) at(r fleet.Ref) *record { return &t.list[r] }

// find returns the record of a query that has not ended, or fleet.Nil.
func (t *records) find(id serving.QueryID) fleet.Ref { return t.ids.get(id) }

// open makes the record of a query, without tasks.
func (t *records) open(q *serving.Query) fleet.Ref {
	var r fleet.Ref
	if n := len(t.free); n > 0 {
		r = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		t.list = append(t.list, noRecord)
		r = fleet.Ref(len(t.list) - 1)
	}
	t.list[r].query = *q
	t.ids.put(q.ID, r)
	return r
}

// end records that the outcome of a query is decided.
func (t *records) end(r fleet.Ref) {
	t.list[r].ended = true
	t.ids.remove(t.list[r].query.ID)
}

// over reports whether a query has ended and has no task.
func (t *records) over(r fleet.Ref) bool { return t.list[r].ended && t.list[r].tasks == 0 }

// close frees the record of a query that is over.
func (t *records) close(r fleet.Ref) {
	t.list[r] = noRecord
	t.free = append(t.free, r)
}

// attach adds a task to those of its query.
func (t *records) attach(ref fleet.Ref) {
	rec := &t.list[t.fleet.Task(ref).Record()]
	t.fleet.SetSibling(ref, rec.first)
	rec.first = ref
	rec.tasks++
}

// release frees a task that is in no place, and returns the record of its query.
func (t *records) release(ref fleet.Ref) fleet.Ref {
	r := t.fleet.Task(ref).Record()
	rec := &t.list[r]
	if rec.first == ref {
		rec.first = t.fleet.Sibling(ref)
	} else {
		at := rec.first
		for t.fleet.Sibling(at) != ref {
			at = t.fleet.Sibling(at)
		}
		t.fleet.SetSibling(at, t.fleet.Sibling(ref))
	}
	t.fleet.Release(ref)
	rec.tasks--
	return r
}

// check verifies every record: its tasks are its own, none waits after it has ended, and the others are found by their
// ID. It returns, by app, the tasks that wait and the queries that have not ended.
func (t *records) check() (waiting, open []int, err error) {
	waiting, open = make([]int, len(t.spec.Apps)), make([]int, len(t.spec.Apps))
	live := 0
	for r := range t.list {
		rec := &t.list[r]
		n := 0
		for ref := rec.first; ref != fleet.Nil; ref = t.fleet.Sibling(ref) {
			x := t.fleet.Task(ref)
			if x.Record() != fleet.Ref(r) || x.Place() == fleet.Free {
				return nil, nil, fmt.Errorf("query %d: task in place %d belongs to record %d, not %d", rec.query.ID,
					x.Place(), x.Record(), r)
			}
			if x.Place().Waits() {
				if x.Hint() == 0 {
					waiting[rec.query.App]++
				}
				if rec.ended {
					return nil, nil, fmt.Errorf("query %d has ended and still waits", rec.query.ID)
				}
			}
			n++
		}
		if n != rec.tasks {
			return nil, nil, fmt.Errorf("query %d counts %d tasks, has %d", rec.query.ID, rec.tasks, n)
		}
		if n > 0 && !rec.ended {
			live++
			open[rec.query.App]++
			if t.find(rec.query.ID) != fleet.Ref(r) {
				return nil, nil, fmt.Errorf("query %d is live and cannot be found by its ID", rec.query.ID)
			}
		}
	}
	if live != t.ids.n {
		return nil, nil, fmt.Errorf("%d queries are live, %d are known by ID", live, t.ids.n)
	}
	return waiting, open, nil
}
