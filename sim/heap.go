package sim

import (
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// event is an input that will happen.
type event struct {
	at    serving.Time
	seq   uint64 // breaks ties in the order of scheduling; engine.Sort then applies the contract's order
	input int32  // index into heap.inputs
}

// heap is a binary min-heap of events. Inputs lie in a slab, so that sifting moves 24 bytes at a time.
type heap struct {
	events []event
	inputs []engine.Input
	free   []int32
	seq    uint64
}

func (h *heap) push(at serving.Time, in *engine.Input) {
	var slot int32
	if n := len(h.free); n > 0 {
		slot = h.free[n-1]
		h.free = h.free[:n-1]
		h.inputs[slot] = *in
	} else {
		slot = int32(len(h.inputs))
		h.inputs = append(h.inputs, *in)
	}
	h.seq++
	e := event{at, h.seq, slot}
	h.events = append(h.events, e)
	p := len(h.events) - 1
	for p > 0 {
		parent := (p - 1) / 2
		if !less(&e, &h.events[parent]) {
			break
		}
		h.events[p] = h.events[parent]
		p = parent
	}
	h.events[p] = e
}

// next returns the time of the first event, or serving.Never.
func (h *heap) next() serving.Time {
	if len(h.events) == 0 {
		return serving.Never
	}
	return h.events[0].at
}

// pop removes the first event and appends its input to in.
func (h *heap) pop(in []engine.Input) []engine.Input {
	slot := h.events[0].input
	in = append(in, h.inputs[slot])
	h.inputs[slot] = engine.Input{}
	h.free = append(h.free, slot)
	last := len(h.events) - 1
	e := h.events[last]
	h.events = h.events[:last]
	if last == 0 {
		return in
	}
	p := 0
	for {
		child := 2*p + 1
		if child >= last {
			break
		}
		if child+1 < last && less(&h.events[child+1], &h.events[child]) {
			child++
		}
		if !less(&h.events[child], &e) {
			break
		}
		h.events[p] = h.events[child]
		p = child
	}
	h.events[p] = e
	return in
}

func less(a, b *event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }
