package profile

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// makeTable fits the table of a concurrency to what was observed. The table never falls.
func (l *Learned) makeTable(o *observed, v serving.VariantID, d serving.DeviceTypeID, concurrency int) {
	// Step 1: draw the curve through the anchors.
	l.chooseAnchors(o)
	curve := l.fitLine()
	if l.priorLatency(v, d, 1, concurrency) != Unknown {
		curve = l.scalePrior(v, d, concurrency)
	}
	most, least, reach := l.spec.Variants[v].MaxBatch, 0, 0 // range of the sizes seen
	for k, r := range o.rings {
		if r != nil {
			reach = min(largestIn(k), most)
			if least == 0 {
				least = reach
			}
		}
	}
	spread := max(2, reach/max(least, 1))
	curve.from, curve.reach = least/spread, min(reach*spread, most)
	at := func(k int) float64 { return curve.at(min(largestIn(k), most)) }
	// Step 2: compute the latencies of the sizes with enough observations.
	l.fitSizes(o, at)
	// Step 3: scale the curve by the ratio of these latencies to it, interpolated between sizes and constant beyond.
	next, floor := 0, 0.0
	var left, right float64
	for k := range o.table {
		for next < len(l.sizes) && l.sizes[next].class < k {
			next++
		}
		x := 1.0
		switch n := len(l.sizes); {
		case n == 0:
		case next == 0:
			x = l.sizes[0].took / at(l.sizes[0].class)
		case next == n:
			x = l.sizes[n-1].took / at(l.sizes[n-1].class)
		default:
			a, b := &l.sizes[next-1], &l.sizes[next]
			if k == a.class+1 || k == 0 {
				left, right = a.took/at(a.class), b.took/at(b.class)
			}
			x = left + (right-left)*float64(k-a.class)/float64(b.class-a.class)
		}
		floor = max(floor, at(k)*x, 1)
		o.table[k] = time.Duration(min(floor, maxBelieved))
	}
}

// fitSizes lists the latencies of the sizes with enough observations, made to rise.
func (l *Learned) fitSizes(o *observed, line func(class int) float64) {
	l.sizes, l.scratch = l.sizes[:0], l.scratch[:0]
	for k, r := range o.rings {
		if r == nil {
			continue
		}
		if r.n >= minObservations {
			l.sizes = append(l.sizes, size{class: k, rank: len(l.scratch), weight: 1})
		}
		l.scratch = append(l.scratch, r.median)
	}
	// Step 1: the median of five neighbours removes outliers. It leaves a rising sequence as it is and levels a peak.
	var five [5]float64
	for k := range l.sizes {
		i := l.sizes[k].rank
		half := min(i, len(l.scratch)-1-i, 2)
		n := copy(five[:], l.scratch[i-half:i+half+1])
		slices.Sort(five[:n])
		l.sizes[k].took = five[half]
	}
	// The first and the last size have neighbours on one side only. Until the last has been seen often, it rises no
	// more than the curve does.
	if n := len(l.sizes); n > 1 {
		l.sizes[0].took = min(l.sizes[0].took, l.sizes[1].took)
		if last, before := &l.sizes[n-1], &l.sizes[n-2]; o.rings[last.class].n < ringSize {
			last.took = min(last.took, before.took*line(last.class)/line(before.class))
		}
	}
	// Step 3: latencies that still fall are noise. Isotonic regression by pooling adjacent violators (Barlow et al.
	// 1972) replaces it by the mean of the sizes involved. A block keeps the position of its last size; its other sizes
	// take its value.
	blocks := 0
	for i := range l.sizes {
		b := l.sizes[i]
		for blocks > 0 && l.blocks[blocks-1].took > b.took {
			last := &l.blocks[blocks-1]
			b.took = (b.took*b.weight + last.took*last.weight) / (b.weight + last.weight)
			b.weight += last.weight
			blocks--
		}
		l.blocks = append(l.blocks[:blocks], b)
		blocks++
	}
	at := 0
	for i := range l.sizes {
		for l.blocks[at].class < l.sizes[i].class {
			at++
		}
		l.sizes[i].took = l.blocks[at].took
	}
}
