package scrooge

import (
	"cmp"
	"math"
	"slices"
)

// fewestMachines packs pieces of one type onto as few machines as it finds.
func (x *request) fewestMachines(device int, pieces []piece) []bin {
	// Step 1: best fit, the largest pieces first.
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(b.utilization(), a.utilization()) })
	var p packing
	sum, memory := 0.0, int64(0)
	for _, one := range pieces {
		x.bestFit(&p, one)
		sum += one.utilization()
		memory += x.memoryOf(&one)
	}
	least := int(math.Ceil(sum - roomTolerance))
	if has := x.spec.DeviceTypes[device].MemoryBytes; has > 0 {
		least = max(least, int((memory+has-1)/has))
	}
	// Step 2: while a bound allows fewer machines, search the packings onto one machine less.
	for n := len(p.bins) - 1; n >= least; n-- {
		t := packingSearch{request: x, pieces: pieces, bins: make([]bin, n), steps: maxPackingSteps}
		for k := range t.bins {
			t.bins[k] = x.bin(device)
		}
		if !t.search(0) {
			break
		}
		p.bins = t.bins
	}
	return p.bins
}

// maxPackingSteps bounds the search for a packing: enough to be exact for a dozen pieces.
const maxPackingSteps = 20_000

// packingSearch searches for a packing onto a given number of machines.
type packingSearch struct {
	*request
	pieces []piece
	bins   []bin
	steps  int
}

// search packs the pieces from k on, the largest first. Of bins with the same room it tries one.
func (t *packingSearch) search(k int) bool {
	if k == len(t.pieces) {
		return true
	}
	for n := range t.bins {
		b := &t.bins[n]
		if t.steps--; t.steps < 0 {
			return false
		}
		if !t.fits(b, &t.pieces[k]) || slices.ContainsFunc(t.bins[:n], func(o bin) bool {
			return near(o.room, b.room) && o.memory == b.memory
		}) {
			continue
		}
		was := *b
		b.pieces = slices.Clone(b.pieces)
		t.put(b, t.pieces[k])
		if t.search(k + 1) {
			return true
		}
		t.bins[n] = was
	}
	return false
}
