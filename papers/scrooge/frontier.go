package scrooge

import (
	"cmp"
	"slices"
	"time"
)

// maxCurveWork bounds the search for the curve of one module. The module's lower curve covers what is left out then.
const maxCurveWork = 1 << 15

// frontier computes the module's curve up to a latency, in so many steps of search.
func (m *module) frontier(within time.Duration, work int) {
	if m.rate == 0 {
		m.curve, m.compositions = costCurve{{}}, []composition{{remainderMode: -1}}
		m.lower, m.complete = m.curve, true
		return
	}
	m.work = work
	// Step 1: all machines in one mode, evenly loaded, give points close to the fractional curve.
	for _, k := range m.byPrice {
		if x := &m.modes[k]; x.full <= within {
			if at := x.sharedLatency(m.rate); at <= within {
				m.add(point{at, m.rate * x.price}, func() composition {
					return composition{remainderMode: k, remainder: m.rate}
				})
			}
		}
	}
	// Step 2: a better point lies where the cheapest mode at a latency can be full, but not for all of the rate. That
	// is a window of latencies in which the cost is between the fractional curve and what is known. The fastest come
	// first.
	fractional, base := m.fractional(within)
	var open []point
	for i, p := range fractional {
		w := window{module: m, base: base[i], from: p.latency,
			to: min(within+1, m.modes[base[i]].sharedLatency(m.rate))}
		if i+1 < len(fractional) {
			w.to = min(w.to, fractional[i+1].latency)
		}
		if w.from < w.to && !w.search() {
			open = append(open, p)
		}
	}
	// Step 3: windows whose search was cut short may hold anything down to the fractional curve.
	m.lower, m.complete = m.curve, len(open) == 0
	for _, p := range open {
		l := &module{curve: slices.Clone(m.lower), compositions: make([]composition, len(m.lower))}
		l.add(p, func() composition { return composition{} })
		m.lower = l.curve
	}
}

// window is a span of latencies in which one mode, the base, is the cheapest that can be used.
type window struct {
	*module
	base     int
	from, to time.Duration // to is excluded
	others   []int         // modes that can be used, the cheapest per item first
	fulls    []full        // the same, as full machines
	chosen   []fulls
}

// full is a full machine, and its cost beyond serving its items in the base mode.
type full struct {
	mode  int
	above float64
}

// search adds all allocations of the window that belong to the curve. It reports whether the search was complete.
func (w *window) search() bool {
	b := &w.modes[w.base]
	for _, k := range w.byPrice {
		if x := &w.modes[k]; k != w.base && x.full < w.to {
			w.others = append(w.others, k)
			if x.cap <= w.rate*(1+remainderTolerance) {
				w.fulls = append(w.fulls, full{k, (x.price - b.price) * x.cap})
			}
		}
	}
	slices.SortStableFunc(w.fulls, func(x, y full) int { return cmp.Compare(x.above, y.above) })
	w.choose(0, w.rate, 0, 0)
	return w.work > 0
}

// useful reports whether an allocation that costs so much above the base and takes at least so long may belong to the
// curve.
func (w *window) useful(above float64, latency time.Duration) bool {
	return w.curve.beats(point{max(latency, w.from), w.rate*w.modes[w.base].price + above})
}

// choose tries all numbers of full machines in modes other than the base, those from first on. left is the rate that is
// left to the base.
func (w *window) choose(first int, left float64, latency time.Duration, above float64) {
	w.finish(left, latency, above)
	for f := first; f < len(w.fulls) && w.work > 0; f++ {
		x := &w.modes[w.fulls[f].mode]
		if !w.useful(above+w.fulls[f].above, latency) {
			return // all that follow cost more
		}
		if x.cap > left*(1+remainderTolerance) || x.full >= w.to {
			continue
		}
		w.work--
		w.push(w.fulls[f].mode)
		w.choose(f, max(0, left-x.cap), max(latency, x.full), above+w.fulls[f].above)
		w.pop()
	}
}

func (w *window) push(mode int) {
	if n := len(w.chosen); n > 0 && w.chosen[n-1].mode == mode {
		w.chosen[n-1].count++
		return
	}
	w.chosen = append(w.chosen, fulls{mode, 1})
}

func (w *window) pop() {
	n := len(w.chosen) - 1
	if w.chosen[n].count--; w.chosen[n].count == 0 {
		w.chosen = w.chosen[:n]
	}
}

// finish serves the rate left with full machines in the base mode, as many as possible or fewer, and the remainder in
// one mode.
func (w *window) finish(left float64, latency time.Duration, above float64) {
	b := &w.modes[w.base]
	if len(w.chosen) > 0 && left > remainderTolerance*w.rate {
		w.try(0, w.base, left, latency, above)
	}
	most := int(left/b.cap + remainderTolerance)
	for n := most; n >= 0 && w.work > 0; n-- {
		w.work--
		rest, at := left-float64(n)*b.cap, latency
		if n > 0 {
			at = max(at, b.full)
		}
		if rest <= remainderTolerance*w.rate {
			w.try(n, -1, 0, at, above)
			continue
		}
		for i, k := range w.others {
			more := above + (w.modes[k].price-b.price)*rest
			if !w.useful(more, at) {
				if i == 0 {
					return // a larger remainder costs even more
				}
				break
			}
			w.try(n, k, rest, at, more)
		}
	}
}

// try adds an allocation: the chosen full machines, n in the base mode, and the remainder in one mode.
func (w *window) try(n, rest int, left float64, latency time.Duration, above float64) {
	if rest >= 0 {
		latency = max(latency, w.modes[rest].sharedLatency(left))
	}
	if latency >= w.to {
		return
	}
	w.add(point{latency, w.rate*w.modes[w.base].price + above}, func() composition {
		out := composition{full: slices.Clone(w.chosen), remainderMode: rest, remainder: left}
		if n > 0 {
			out.full = append(out.full, fulls{w.base, n})
		}
		return out
	})
}
