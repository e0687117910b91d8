package board

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// endedBatch is a batch that has ended.
type endedBatch struct {
	id       serving.BatchID
	instance *instance
	stage    serving.StageID
	variant  serving.VariantID
	items    int32
	started  serving.Time
	expected serving.Time
	ended    serving.Time
}

// endedBatches has the latest of them, in the order of their ends.
type endedBatches struct {
	ring []endedBatch
	n    int
}

func (e *endedBatches) add(id serving.BatchID, r batchRun, now serving.Time) {
	e.ring[e.n%len(e.ring)] = endedBatch{id, r.instance, r.stage, r.variant, r.items, r.started, r.expected, now}
	e.n++
}

// drop forgets some of them.
func (e *endedBatches) drop(is func(*endedBatch) bool) {
	kept := make([]endedBatch, 0, min(e.n, len(e.ring)))
	e.each(func(x *endedBatch) bool {
		if !is(x) {
			kept = append(kept, *x)
		}
		return true
	})
	clear(e.ring)
	for e.n = 0; e.n < len(kept); e.n++ {
		e.ring[e.n] = kept[len(kept)-1-e.n]
	}
}

// each calls see for every batch that is kept, latest end first, until it returns false.
func (e *endedBatches) each(see func(*endedBatch) bool) {
	for k := e.n - 1; k >= max(0, e.n-len(e.ring)); k-- {
		if !see(&e.ring[k%len(e.ring)]) {
			return
		}
	}
}

// batch returns a batch that runs or has ended; false for one that is not kept.
func (m *machines) batch(id serving.BatchID) (endedBatch, bool) {
	if r, ok := m.running[id]; ok {
		return endedBatch{id, r.instance, r.stage, r.variant, r.items, r.started, r.expected, serving.Never}, true
	}
	var out endedBatch
	m.past.each(func(e *endedBatch) bool {
		if e.id == id {
			out = *e
		}
		return e.id != id
	})
	return out, out.instance != nil
}

// slotsAt returns, for every instance on which something ran when a batch began, how many batches ran there before it,
// and when the first of those was believed to end.
func (m *machines) slotsAt(of *endedBatch) map[*instance]busyAt {
	out := make(map[*instance]busyAt)
	add := func(i *instance, id serving.BatchID, started, expected, ended serving.Time) {
		if id == of.id || started > of.started || started == of.started && id > of.id || ended <= of.started {
			return
		}
		x := out[i]
		if x.batches++; x.batches == 1 || expected < x.until {
			x.until = expected
		}
		out[i] = x
	}
	for id, r := range m.running {
		add(r.instance, id, r.started, r.expected, serving.Never)
	}
	m.past.each(func(e *endedBatch) bool {
		add(e.instance, e.id, e.started, e.expected, e.ended)
		return e.ended >= of.started
	})
	return out
}

// busyAt is what ran on an instance at an instant.
type busyAt struct {
	batches int
	until   serving.Time
}

// heldAt reports whether an instance had a variant loaded at an instant, and whether it was loading it.
func (i *instance) heldAt(v serving.VariantID, at serving.Time) (loaded, loading bool) {
	for _, list := range [][]held{i.variants, i.unheld} {
		for _, h := range list {
			if h.variant == v && at < h.until {
				loaded, loading = loaded || h.from <= at, loading || h.from > at
			}
		}
	}
	return loaded, loading && !loaded
}

// at lists the instances of a stage that lived at an instant, without order.
func (m *machines) at(s serving.StageID, at serving.Time) (out []*instance) {
	for _, i := range m.instances { // any order: comparing.before breaks ties by id
		if i.stage == s && i.from <= at {
			out = append(out, i)
		}
	}
	for _, i := range m.gone {
		if i.stage == s && i.from <= at && at < i.until {
			out = append(out, i)
		}
	}
	return out
}

// sized is batches of one size of a variant on one kind of machine.
type sized struct {
	variant serving.VariantID
	device  serving.DeviceTypeID
	items   int32
}

// seenTimes is how many such batches were seen, and what they took in all.
type seenTimes struct {
	took time.Duration
	n    int
}

// seenTimes returns what the batches that are kept took.
func (m *machines) seenTimes() map[sized]seenTimes {
	out := make(map[sized]seenTimes)
	m.past.each(func(e *endedBatch) bool {
		key := sized{e.variant, e.instance.device, e.items}
		x := out[key]
		x.took, x.n = x.took+e.ended.Sub(e.started), x.n+1
		out[key] = x
		return true
	})
	return out
}
