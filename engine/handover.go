package engine

import (
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// How a plan takes over from the one before without a gap. Three things are kept apart:
//
//   - A stage keeps an instance that the plan no longer wants until none of those wanted for it is still loading.
//   - A worker runs one instance of a place at a time: a successor loads beside its predecessor, then waits (Held) until
//     that one has finished its last batch, since the two would share a machine that was profiled for one.
//   - A worker's memory: where predecessor and successor do not fit together, the old one goes first (break before make).

// delayed is a launch that waits for memory on its worker.
type delayed struct {
	key fleet.Key
	why Reason
}

// need is the memory that variants take with their largest batches, as far as it is known.
func need(spec *serving.Spec, variants []plan.Variant) int64 {
	n := int64(0)
	for _, v := range variants {
		x := &spec.Variants[v.Variant]
		n += x.MemoryBytes + int64(v.Limit)*x.ItemBytes
	}
	return n
}

// room tells whether more bytes can be taken on a worker now. When nothing on the worker is about to go it says yes even if
// they do not fit: the plan has oversubscribed the worker, and waiting would not mend it.
func (e *Engine) room(w serving.WorkerID, more int64) bool {
	limit := e.spec.DeviceTypes[e.spec.Workers[w].DeviceType].MemoryBytes
	if limit <= 0 || more <= 0 {
		return true
	}
	going := false
	for _, i := range e.workers[w] {
		wanted := e.holders[i.Key] == i
		going = going || !wanted
		for _, l := range i.Variants {
			if l.Delayed {
				continue
			}
			more += need(e.spec, []plan.Variant{{Variant: l.Variant, Limit: l.Limit}})
			going = going || wanted && !e.keeps(i.Key, l.Variant)
		}
	}
	return more <= limit || !going
}

// keeps tells whether the plan in force has a variant at a place.
func (e *Engine) keeps(k fleet.Key, v serving.VariantID) bool {
	for _, w := range e.planned[k].Variants {
		if w.Variant == v {
			return true
		}
	}
	return false
}

// occupied tells whether an earlier instance still lives at i's place.
func (e *Engine) occupied(i *fleet.Instance) bool {
	for _, o := range e.workers[i.Key.Worker] {
		if o.ID < i.ID && o.Key == i.Key {
			return true
		}
	}
	return false
}

// handOver lets what waited for memory or for its predecessor go on, on the workers where something has gone.
func (e *Engine) handOver() {
	for at := 0; at < len(e.freed.list); at++ {
		id := e.freed.list[at]
		e.freed.done(id)
		w := serving.WorkerID(id)
		for _, i := range append([]*fleet.Instance(nil), e.workers[w]...) {
			for v := range i.Variants {
				l := &i.Variants[v]
				if l.Delayed && e.room(w, need(e.spec, []plan.Variant{{Variant: l.Variant, Limit: l.Limit}})) {
					l.Delayed = false
					e.out = append(e.out, Decision{Kind: LoadVariant, Reason: Wanted, Instance: i.ID, Variant: l.Variant, Items: int32(l.Limit)})
				}
			}
			if i.Held && !e.occupied(i) {
				i.Held = false
				for v := range i.Variants {
					if i.Variants[v].Warm {
						e.warm(i, i.Variants[v].Variant)
						break // the rest of the warm ones are taken up with it
					}
				}
			}
		}
		later := e.delayed
		e.delayed = nil
		for _, d := range later {
			switch {
			case d.key.Worker != w:
				e.delayed = append(e.delayed, d)
			case e.holders[d.key] == nil:
				e.launch(d.key, d.why)
			}
		}
	}
	e.freed.list = e.freed.list[:0]
}

// retire drains instances that the plan does not want: those of a stage as soon as none of the stage's wanted ones is still
// loading, those of a closed app when its queries have ended, those on a worker whose memory is waited for at once.
func (e *Engine) retire() {
	if cap(e.coming) < len(e.spec.Stages) {
		e.coming = make([]bool, len(e.spec.Stages))
	}
	e.coming = e.coming[:len(e.spec.Stages)]
	clear(e.coming)
	for _, i := range e.fleet.Live() {
		if i.State == fleet.Launching && !i.Held && e.holders[i.Key] == i {
			e.coming[i.Stage] = true
		}
	}
	open := false
	for _, i := range append([]*fleet.Instance(nil), e.fleet.Live()...) {
		if i.State == fleet.Draining || e.holders[i.Key] == i {
			continue
		}
		if (e.coming[i.Stage] || e.awaited(i.Stage)) && !e.crowded(i.Key.Worker) {
			open = true
			continue
		}
		e.fleet.Drain(i)
		e.empty(i)
		e.touch(i)
		if i.Idle() {
			e.stop(i)
		}
	}
	e.transition = open
}

// crowded tells whether something waits for memory on a worker.
func (e *Engine) crowded(w serving.WorkerID) bool {
	for _, d := range e.delayed {
		if d.key.Worker == w {
			return true
		}
	}
	return false
}
