package engine

import (
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// How a plan takes over from the one before without a gap. Three things are kept apart:
//
//   - A stage keeps an instance that the plan no longer wants until none of those wanted for it is still loading.
//   - A worker runs one instance of a place at a time: a successor loads beside its predecessor, then waits (Held)
//     until that one has finished its last batch, since the two would share a machine that was profiled for one.
//   - A worker's memory, and what of it is cut into parts: where predecessor and successor do not fit together, the old
//     one goes first (break before make).

// delayed is a launch that waits for room on its worker.
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

// takes is the memory that an instance takes of its worker: all of its part's, where a part has memory of its own.
func (e *Engine) takes(d serving.DeviceTypeID, variants int64) int64 {
	if x := &e.spec.DeviceTypes[d]; x.Part && x.MemoryBytes > 0 {
		return x.MemoryBytes
	}
	return variants
}

// loaded is the memory that the variants of an instance take.
func (e *Engine) loaded(i *fleet.Instance) (n int64) {
	for _, l := range i.Variants {
		if !l.Delayed {
			n += need(e.spec, []plan.Variant{{Variant: l.Variant, Limit: l.Limit}})
		}
	}
	return n
}

// room tells whether an instance can be launched on a worker now. When nothing on the worker is about to go it says yes
// even if it does not fit: the plan has oversubscribed the worker, and waiting would not mend it.
func (e *Engine) room(w serving.WorkerID, want *plan.Instance) bool {
	d := want.DeviceType(e.spec)
	worker := &e.spec.DeviceTypes[e.spec.Workers[w].DeviceType]
	more := e.takes(d, need(e.spec, want.Variants))
	memory, threads, percent := more, 0, 0
	going := false
	for _, i := range e.workers[w] {
		memory += e.takes(i.DeviceType, e.loaded(i))
		going = going || e.going(i)
		if x := &e.spec.DeviceTypes[i.DeviceType]; x.Part {
			threads += x.Cores
			if i.Accelerator == want.Accelerator {
				percent += x.Percent
			}
		}
	}
	if !going {
		return true
	}
	if x := &e.spec.DeviceTypes[d]; x.Part && (threads+x.Cores > worker.Cores || x.Percent > 0 &&
		percent+x.Percent > 100) {
		return false
	}
	return more <= 0 || worker.MemoryBytes <= 0 || memory <= worker.MemoryBytes
}

// roomOn tells whether instance i can load one more variant now, like room: in its part's memory, where that has some
// of its own, or in its worker's.
func (e *Engine) roomOn(i *fleet.Instance, v plan.Variant) bool {
	more := need(e.spec, []plan.Variant{v})
	limit := e.spec.DeviceTypes[i.DeviceType].MemoryBytes
	if !e.spec.DeviceTypes[i.DeviceType].Part || limit <= 0 {
		limit = e.spec.DeviceTypes[e.spec.Workers[i.Key.Worker].DeviceType].MemoryBytes
		if limit <= 0 || more <= 0 {
			return true
		}
		going := false
		for _, o := range e.workers[i.Key.Worker] {
			more += e.takes(o.DeviceType, e.loaded(o))
			going = going || e.going(o)
		}
		return more <= limit || !going
	}
	return more <= 0 || more+e.loaded(i) <= limit || !e.going(i)
}

// going tells whether an instance, or one of its variants, is about to go.
func (e *Engine) going(i *fleet.Instance) bool {
	if e.holders[i.Key] != i {
		return true
	}
	for _, l := range i.Variants {
		if !l.Delayed && !e.keeps(i.Key, l.Variant) {
			return true
		}
	}
	return false
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
				if l.Delayed && e.roomOn(i, plan.Variant{Variant: l.Variant, Limit: l.Limit}) {
					l.Delayed = false
					e.out = append(e.out, Decision{
						Kind: LoadVariant, Reason: Wanted, Instance: i.ID, Variant: l.Variant, Items: int32(l.Limit),
					})
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

// retire drains instances that the plan does not want: those of a stage as soon as none of the stage's wanted ones is
// still loading, those of a closed app when its queries have ended, those on a worker whose memory is waited for at
// once.
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
		if !e.rest(i) && i.Idle() {
			e.stop(i)
		}
	}
	e.transition = open
}

// crowded tells whether something waits for room on a worker.
func (e *Engine) crowded(w serving.WorkerID) bool {
	for _, d := range e.delayed {
		if d.key.Worker == w {
			return true
		}
	}
	return false
}
