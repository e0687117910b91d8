package fleet

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Check verifies all invariants and returns the first violation: every task is in exactly one place, counters equal the
// lists' contents, queues are in order, slots and batch limits are kept, stopped instances hold nothing.
func (f *View) Check() error {
	found := make([]bool, len(f.tasks)) // by Ref
	for s := range f.central {
		if err := f.checkQueue(found, &f.central[s], Central, 0); err != nil {
			return fmt.Errorf("the central queue of stage %d: %w", s, err)
		}
		if err := f.checkQueue(found, &f.turns[s], Turn, 0); err != nil {
			return fmt.Errorf("the tasks that wait for their turn at stage %d: %w", s, err)
		}
	}
	if err := f.checkReady(); err != nil {
		return err
	}
	running := make([]int, len(f.shared)) // by worker, on the instances that share it
	for _, i := range f.live {
		if i.shared != nil {
			running[i.p.Key.Worker] += len(i.running)
			if i.shared != f.shared[i.p.Key.Worker] || !slices.Contains(i.shared.instances, i) {
				return fmt.Errorf("instance %d shares worker %d and is not listed there", i.id, i.p.Key.Worker)
			}
		}
		if err := f.checkInstance(found, i); err != nil {
			return fmt.Errorf("instance %d: %w", i.id, err)
		}
	}
	for w, x := range f.shared {
		if x.running != running[w] {
			return fmt.Errorf("%d batches are counted on the instances that share worker %d, there are %d", x.running,
				w, running[w])
		}
	}
	for r := range f.tasks {
		if t := &f.tasks[r]; (t.place != Free) != found[r] {
			return fmt.Errorf("query %d claims place %d and is found nowhere", t.w.Query, t.place)
		}
	}
	return nil
}

// checkReady checks which instances are ready, and how many are of which kind.
func (f *View) checkReady() error {
	ready := make([]int, len(f.ready))   // by stage
	kinds := make([][]int, len(f.ready)) // by stage and place in f.kinds
	for s := range kinds {
		kinds[s] = make([]int, len(f.kinds[s]))
	}
	for _, i := range f.live {
		if !i.serves() {
			continue
		}
		s := i.p.Stage
		if ready[s] >= len(f.ready[s]) || f.ready[s][ready[s]] != i {
			return fmt.Errorf("instance %d is ready and is not place %d of the %d that are listed of stage %d", i.id,
				ready[s], len(f.ready[s]), s)
		}
		ready[s]++
		if i.fastest >= 0 {
			own := kind{i.p.Variants[i.fastest].Variant, i.p.DeviceType}
			at := slices.IndexFunc(f.kinds[s], func(k countedKind) bool { return k.kind == own })
			if at < 0 {
				return fmt.Errorf("instance %d of stage %d is of a kind that is not listed", i.id, s)
			}
			kinds[s][at]++
		}
	}
	for s := range ready {
		if ready[s] != len(f.ready[s]) {
			return fmt.Errorf("stage %d has %d ready instances, %d are listed", s, ready[s], len(f.ready[s]))
		}
		for at, k := range f.kinds[s] {
			if n := kinds[s][at]; n == 0 || n != k.instances {
				return fmt.Errorf("stage %d has %d instances of a kind, %d are counted", s, n, k.instances)
			}
		}
	}
	return nil
}

// checkQueue checks a queue and adds its tasks to found.
func (f *View) checkQueue(found []bool, q *Queue, place Place, holder serving.InstanceID) error {
	n, items, constrained, uneven, timed := 0, 0, 0, 0, 0
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
		if t.constrained {
			constrained++
		}
		if t.w.Items != 1 || t.w.Length != 0 {
			uneven++
		}
		if t.timed() {
			timed++
		}
		prev = r
	}
	if q.tail != prev || n != q.n || items != q.items || constrained != q.constrained || uneven != q.uneven ||
		timed != q.timed || takes != q.takes {
		return fmt.Errorf("it counts %d tasks and %d items, it holds %d and %d", q.n, q.items, n, items)
	}
	return nil
}

// checkInstance checks an instance's queue, batches and variants, and adds its tasks to found.
func (f *View) checkInstance(found []bool, i *Instance) error {
	if err := f.checkQueue(found, &i.queue, Queued, i.id); err != nil {
		return fmt.Errorf("its queue: %w", err)
	}
	if i.rest > 0 && i.queue.n > 0 {
		return fmt.Errorf("it rests and has %d tasks queued", i.queue.n)
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
