package fleet

import (
	"fmt"
	"slices"
	"time"
)

// Check walks the whole state and reports the first broken invariant: every task in exactly one place, counters equal
// to what the lists hold, queues in order, slots and batch limits respected, nothing on a stopped instance.
func (f *Fleet) Check() error {
	seen := make(map[Ref]bool)
	list := func(where string, q *Queue, want Place, id int32) error {
		n, items, special, uneven := 0, 0, 0, 0
		var work time.Duration
		prev := Nil
		for r := q.head; r != Nil; r = f.tasks[r].next {
			t := &f.tasks[r]
			if seen[r] {
				return fmt.Errorf("query %d is in two places, one of them %s", t.Query, where)
			}
			seen[r] = true
			if t.Place != want || int32(t.Instance) != id || t.prev != prev {
				return fmt.Errorf("query %d in %s: place %d, instance %d, want %d and %d", t.Query, where, t.Place,
					t.Instance, want, id)
			}
			if prev != Nil && before(t, &f.tasks[prev]) {
				return fmt.Errorf("query %d in %s stands behind query %d, which it must precede", t.Query, where,
					f.tasks[prev].Query)
			}
			n++
			items += int(t.Items)
			work += t.work
			if t.Special {
				special++
			}
			if t.Items != 1 {
				uneven++
			}
			prev = r
		}
		if q.tail != prev || n != q.n || items != q.items || special != q.special || uneven != q.uneven ||
			work != q.work {
			return fmt.Errorf("%s counts %d tasks and %d items, it holds %d and %d", where, q.n, q.items, n, items)
		}
		return nil
	}
	for s := range f.central {
		if err := list(fmt.Sprintf("the central queue of stage %d", s), &f.central[s], Central, 0); err != nil {
			return err
		}
		if err := list(fmt.Sprintf("the tasks that wait for their turn at stage %d", s), &f.turns[s], Turn,
			0); err != nil {
			return err
		}
	}
	together := make([]int32, len(f.together))
	for _, i := range f.live {
		if i.shares {
			together[i.Key.Worker] += int32(len(i.Running))
		}
		if err := list(fmt.Sprintf("the queue of instance %d", i.ID), &i.Queue, Queued, int32(i.ID)); err != nil {
			return err
		}
		if len(i.Running) > i.Built {
			return fmt.Errorf("instance %d runs %d batches in %d slots", i.ID, len(i.Running), i.Slots)
		}
		for _, b := range i.Running {
			n, items := 0, 0
			for r := b.Head; r != Nil; r = f.tasks[r].next {
				if seen[r] {
					return fmt.Errorf("query %d is in two places, one of them batch %d", f.tasks[r].Query, b.ID)
				}
				seen[r] = true
				if f.tasks[r].Place != Running {
					return fmt.Errorf("query %d in batch %d has place %d", f.tasks[r].Query, b.ID, f.tasks[r].Place)
				}
				n++
				items += int(f.tasks[r].Items)
			}
			if n != b.Tasks || items != b.Items {
				return fmt.Errorf("batch %d counts %d tasks and %d items, it holds %d and %d", b.ID, b.Tasks, b.Items,
					n, items)
			}
		}
	}
	if !slices.Equal(together, f.together) {
		return fmt.Errorf("by worker %v batches are counted on instances that share it, there are %v", f.together,
			together)
	}
	for r := range f.tasks {
		if (f.tasks[r].Place != Free) != seen[Ref(r)] {
			return fmt.Errorf("query %d claims place %d and is found nowhere", f.tasks[r].Query, f.tasks[r].Place)
		}
	}
	return nil
}
