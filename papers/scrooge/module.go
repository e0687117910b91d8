package scrooge

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// module is a module of the problem with its cost curve.
//
// Machines in any modes that are full, any number of each, serve the items of a module, and as few machines as possible
// in one mode share the remaining rate evenly. So
//
//	rate          = sum over modes k of n_k*Rate_k + rest
//	worst latency = max(Worst_k(Rate_k) where n_k > 0, Worst_j(rest/ceil(rest/Rate_j)))
//
// and the cost is each machine's price times the part of it that is used (2a). This includes the allocations of the
// paper's method: full machines, and a partial one in a mode of its own. In addition, the remainder may be shared: two
// machines at two thirds wait less for their batches than a full one and one at a third (Eq. 3), at the same cost. It
// leaves out machines that get less than they can carry so that a partial machine in another mode gets more; Bound
// holds for those too.
type module struct {
	rate         float64
	modes        []mode
	byPrice      []int // modes, the cheapest per item first
	curve        costCurve
	compositions []composition // of curve
	lower        costCurve     // no allocation that is searched is below it; curve itself when the search was complete
	complete     bool          // the search was complete
	work         int           // steps that the search may still take
}

// mode is a Mode with values that are used often.
type mode struct {
	*Mode
	cap   float64       // items/s of a full machine
	price float64       // $/h for one item/s
	full  time.Duration // worst latency of a full machine
}

// composition is an allocation of a module: full machines, and machines that share the remaining rate.
type composition struct {
	full          []fulls
	remainderMode int     // mode of the machines that share the remainder, or -1
	remainder     float64 // in items/s, beyond the full machines
}

type fulls struct{ mode, count int }

// remainderTolerance is the part of a rate below which a remainder is a rounding error, and the part of a machine below
// which another machine is not needed.
const remainderTolerance = 1e-10

// machines returns how many machines in the mode carry a rate.
func (m *mode) machines(rate float64) float64 {
	return max(1, math.Ceil(rate/m.cap-remainderTolerance))
}

// sharedLatency returns the worst latency of machines in the mode, as few as possible, that share a rate evenly.
func (m *mode) sharedLatency(rate float64) time.Duration {
	return m.WorstLatency(min(m.cap, rate/m.machines(rate)))
}

func (p *Problem) module(i int) *module {
	src := &p.Modules[i]
	m := &module{rate: src.Rate}
	for k := range src.Modes {
		x := &src.Modes[k]
		m.modes = append(m.modes, mode{Mode: x, cap: x.Rate(), price: p.pricePerItem(x),
			full: x.WorstLatency(x.Rate())})
		m.byPrice = append(m.byPrice, k)
	}
	slices.SortStableFunc(m.byPrice, func(a, b int) int {
		return cmp.Or(cmp.Compare(m.modes[a].price, m.modes[b].price), cmp.Compare(m.modes[a].full, m.modes[b].full))
	})
	return m
}

// fractional returns the curve if the remainder waits no longer than items at a full machine (the paper's first step),
// with the mode of every point.
func (m *module) fractional(within time.Duration) (costCurve, []int) {
	if m.rate == 0 {
		return costCurve{{}}, []int{-1}
	}
	var out costCurve
	var modes []int
	for _, k := range m.byPrice {
		x := &m.modes[k]
		if x.full <= within && (len(out) == 0 || x.full < out[len(out)-1].latency) {
			out, modes = append(out, point{x.full, m.rate * x.price}), append(modes, k)
		}
	}
	slices.Reverse(out)
	slices.Reverse(modes)
	return out, modes
}

// add adds an allocation to the curve if it belongs there.
func (m *module) add(p point, w func() composition) {
	if !m.curve.beats(p) {
		return
	}
	k := m.curve.at(p.latency) + 1
	if k > 0 && m.curve[k-1].latency == p.latency {
		k--
	}
	end := k
	for end < len(m.curve) && m.curve[end].cost >= p.cost*(1-costTolerance) {
		end++
	}
	m.curve = slices.Replace(m.curve, k, end, p)
	m.compositions = slices.Replace(m.compositions, k, end, w())
}
