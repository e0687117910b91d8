package fleet

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Check walks the whole state and reports the first broken invariant: every task in exactly one place, counters equal
// to what the lists hold, queues in order, slots and batch limits respected, nothing on a stopped instance.
func (f *View) Check() error {
	found := make(map[Ref]bool)
	for s := range f.central {
		if err := f.checkQueue(found, &f.central[s], Central, 0); err != nil {
			return fmt.Errorf("the central queue of stage %d: %w", s, err)
		}
		if err := f.checkQueue(found, &f.turns[s], Turn, 0); err != nil {
			return fmt.Errorf("the tasks that wait for their turn at stage %d: %w", s, err)
		}
	}
	beside := make([]int32, len(f.beside))
	for _, i := range f.live {
		if i.sharesWorker {
			beside[i.p.Key.Worker] += int32(len(i.running))
		}
		if err := f.checkInstance(found, i); err != nil {
			return fmt.Errorf("instance %d: %w", i.id, err)
		}
	}
	if !slices.Equal(beside, f.beside) {
		return fmt.Errorf("by worker %v batches are counted on instances that share it, there are %v", f.beside, beside)
	}
	for r := range f.tasks {
		if t := &f.tasks[r]; (t.place != Free) != found[Ref(r)] {
			return fmt.Errorf("query %d claims place %d and is found nowhere", t.w.Query, t.place)
		}
	}
	return nil
}

// checkQueue checks a queue, and adds its tasks to those that were found.
func (f *View) checkQueue(found map[Ref]bool, q *Queue, place Place, holder serving.InstanceID) error {
	n, items, special, uneven := 0, 0, 0, 0
	var takes time.Duration
	prev := Nil
	for r := q.head; r != Nil; r = f.tasks[r].next {
		t := &f.tasks[r]
		if found[r] {
			return fmt.Errorf("query %d is in two places", t.w.Query)
		}
		found[r] = true
		if t.place != place || t.holder != holder || t.prev != prev {
			return fmt.Errorf("query %d: place %d, instance %d, want %d and %d", t.w.Query, t.place, t.holder, place,
				holder)
		}
		if prev != Nil && before(t, &f.tasks[prev]) {
			return fmt.Errorf("query %d stands behind query %d, which it must precede", t.w.Query,
				f.tasks[prev].w.Query)
		}
		n++
		items += t.Items()
		takes += t.takes
		if t.special {
			special++
		}
		if t.w.Items != 1 {
			uneven++
		}
		prev = r
	}
	if q.tail != prev || n != q.n || items != q.items || special != q.special || uneven != q.uneven ||
		takes != q.takes {
		return fmt.Errorf("it counts %d tasks and %d items, it holds %d and %d", q.n, q.items, n, items)
	}
	return nil
}

// checkInstance checks an instance's queue, batches and variants, and adds its tasks to those that were found.
func (f *View) checkInstance(found map[Ref]bool, i *Instance) error {
	if err := f.checkQueue(found, &i.queue, Queued, i.id); err != nil {
		return fmt.Errorf("its queue: %w", err)
	}
	if len(i.running) > i.p.Built {
		return fmt.Errorf("%d batches run, it was built for %d", len(i.running), i.p.Built)
	}
	if i.active >= 0 && !i.p.Variants[i.active].Usable() {
		return fmt.Errorf("its active variant %d is not usable", i.p.Variants[i.active].Variant)
	}
	for _, b := range i.running {
		n, items := 0, 0
		for r := b.Head; r != Nil; r = f.tasks[r].next {
			t := &f.tasks[r]
			if found[r] {
				return fmt.Errorf("query %d is in two places, one of them batch %d", t.w.Query, b.ID)
			}
			found[r] = true
			if t.place != Running {
				return fmt.Errorf("query %d in batch %d has place %d", t.w.Query, b.ID, t.place)
			}
			if t.w.Pin == serving.None && f.spec.BelowFloor(b.Variant) {
				return fmt.Errorf("query %d runs in batch %d on variant %d, which is below its app's accuracy floor",
					t.w.Query, b.ID, b.Variant)
			}
			n++
			items += t.Items()
		}
		if n != b.Tasks || items != b.Items {
			return fmt.Errorf("batch %d counts %d tasks and %d items, it holds %d and %d", b.ID, b.Tasks, b.Items, n,
				items)
		}
	}
	return nil
}
