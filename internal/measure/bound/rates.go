package bound

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// batch is a size of batch, and how many of them run at once.
type batch struct {
	items int
	rate  float64       // items in time for each second of a device
	least time.Duration // that it takes; 0 where nobody asked
}

// batches lists the batches of a variant on a device that can be in time when they may take at most within, by falling
// rate. Only if timed says so they know the least time that they take.
func (w *Model) batches(
	v serving.VariantID, d serving.DeviceTypeID, within time.Duration, timed bool,
) (out []batch) {
	for x, rate := range w.inTime(v, d, 1, within) {
		b := batch{items: x.items, rate: rate}
		if timed {
			b.least = w.least(v, d, x.items, x.level)
		}
		out = append(out, b)
	}
	slices.SortStableFunc(out, func(a, b batch) int { return cmp.Compare(b.rate, a.rate) })
	return out
}

// rateTable is the rates of the program's variants.
type rateTable struct {
	lists map[timed][]batch
	by    [][]float64    // distinct rates, by kind and use
	known map[string]int // into by
	key   []byte
}

type timed struct {
	variant serving.VariantID
	device  serving.DeviceTypeID
	within  time.Duration
	length  int32
}

func newRateTable() rateTable {
	return rateTable{lists: make(map[timed][]batch), known: make(map[string]int)}
}

// ratesOf returns an index into rates.by: the most items of a variant at a stage that a second of each kind and use
// gives for a class with batches whose least time is at most limit; -1 where all are 0.
func (p *program) ratesOf(v serving.VariantID, x *class, stage int, limit time.Duration) int {
	var by []float64
	any := false
	t := &p.rates
	t.key = t.key[:0]
	for k := range p.kinds {
		for _, u := range p.kinds[k].uses {
			rate := 0.0
			if p.w.fits(v, u.device) && p.w.fits(v, p.kinds[k].device) {
				rate = p.rate(v, u.device, x, stage, limit)
			}
			any = any || rate > 0
			by = append(by, rate)
			t.key = binary.LittleEndian.AppendUint64(t.key, math.Float64bits(rate))
		}
	}
	if !any {
		return -1
	}
	at, ok := t.known[string(t.key)]
	if !ok {
		at = len(t.by)
		t.known[string(t.key)] = at
		t.by = append(t.by, by)
	}
	return at
}

// rate returns the rate of the best batch that queries of a class can be in.
func (p *program) rate(v serving.VariantID, d serving.DeviceTypeID, x *class, stage int, limit time.Duration) float64 {
	within := x.within
	if p.crowds != nil {
		within -= p.crowds[x.app].aside[stage]
	}
	k := timed{v, d, within, 0}
	if stage == 0 {
		k.length = x.length
	}
	list, ok := p.rates.lists[k]
	if !ok {
		list = p.w.long(k.length).batches(v, d, within, p.crowds != nil)
		p.rates.lists[k] = list
	}
	size := 1
	if stage == 0 {
		size = x.size
	}
	for i := range list {
		b := &list[i]
		if b.items < size || b.least > limit {
			continue
		}
		if p.crowds == nil || p.crowds[x.app].meet(stage, b.least)[x.place] >= float64(b.items) {
			return b.rate
		}
	}
	return 0
}
