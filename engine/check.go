package engine

import (
	"fmt"

	"github.com/sluice-serving/sluice/serving/fleet"
)

// Check walks the whole state and reports the first broken invariant, or the first rule that the driver or a policy has
// broken since the start. Tests call it after every Step.
func (e *Engine) Check() error {
	if e.fault != nil {
		return e.fault
	}
	if err := e.fleet.Check(); err != nil {
		return err
	}
	if err := e.checkStreams(); err != nil {
		return err
	}
	waiting, open := make([]int, len(e.spec.Apps)), make([]int, len(e.spec.Apps))
	live := 0
	for r := range e.records {
		rec := &e.records[r]
		n := 0
		for ref := rec.first; ref != fleet.Nil; ref = e.fleet.Sibling(ref) {
			t := e.fleet.Task(ref)
			if t.Record != fleet.Ref(r) || t.Place == fleet.Free {
				return fmt.Errorf("query %d: task in place %d belongs to record %d, not %d", rec.query.ID, t.Place,
					t.Record, r)
			}
			if t.Place != fleet.Running {
				waiting[rec.query.App]++
				if rec.ended {
					return fmt.Errorf("query %d has ended and still waits", rec.query.ID)
				}
			}
			n++
		}
		if n != rec.tasks {
			return fmt.Errorf("query %d counts %d tasks, has %d", rec.query.ID, rec.tasks, n)
		}
		if n > 0 && !rec.ended {
			live++
			open[rec.query.App]++
			if e.ids.get(rec.query.ID) != fleet.Ref(r) {
				return fmt.Errorf("query %d is live and cannot be found by its ID", rec.query.ID)
			}
		}
	}
	if live != e.ids.n {
		return fmt.Errorf("%d queries are live, %d are known by ID", live, e.ids.n)
	}
	for a := range waiting {
		if open[a] != e.pending[a] {
			return fmt.Errorf("app %q counts %d queries that have not ended, has %d", e.spec.Apps[a].Name, e.pending[a],
				open[a])
		}
		if waiting[a] != e.waiting[a] {
			return fmt.Errorf("app %q counts %d waiting tasks, has %d", e.spec.Apps[a].Name, e.waiting[a], waiting[a])
		}
	}
	places := make(map[fleet.Key]*fleet.Instance)
	for _, i := range e.fleet.Live() {
		if err := e.checkRest(i); err != nil {
			return err
		}
		if other := places[i.Key]; other != nil && i.State == fleet.Ready && other.State == fleet.Ready {
			return fmt.Errorf("instances %d and %d are both ready at place %v", other.ID, i.ID, i.Key)
		} else if other == nil || i.State == fleet.Ready {
			places[i.Key] = i
		}
		if i.State == fleet.Draining && i.Queue.Len() > 0 {
			return fmt.Errorf("instance %d drains and has %d tasks queued", i.ID, i.Queue.Len())
		}
		// A free slot beside waiting queries must have somebody to wake it.
		if _, ok := e.timers.Key(len(e.spec.Stages) + int(i.ID)); !ok && i.Queue.Len() > 0 && i.FreeSlots() > 0 {
			return fmt.Errorf("instance %d has a free slot and %d tasks queued, and nothing will wake it", i.ID,
				i.Queue.Len())
		}
	}
	return nil
}
