package scrooge

import (
	"cmp"
	"math"
	"slices"
)

// consolidate lowers the rent by moving the load of single machines: into the spare capacity of others or onto a
// cheaper machine, in any mode within the module's budget.
func (c *candidate) consolidate() {
	for c.emptyMachine() {
	}
}

// emptyMachine gives up a machine where that rents less. It tries those with the most expensive spare capacity first.
func (c *candidate) emptyMachine() bool {
	order := slices.Clone(c.packing.open)
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &c.packing.bins[a], &c.packing.bins[b]
		return cmp.Compare(y.room*c.request.prices[y.device], x.room*c.request.prices[x.device])
	})
	for _, k := range order {
		price := c.request.prices[c.packing.bins[k].device]
		if bins, cost := c.withoutBin(k, price*(1-roomTolerance)); bins != nil && cost < price {
			c.packing.bins = bins
			c.count()
			return true
		}
	}
	return false
}

// withoutBin moves the load of bin k elsewhere, with new machines for less than most $/h in all. It returns the bins
// that are then used, or nil, and the cost of the new ones.
func (c *candidate) withoutBin(k int, most float64) ([]bin, float64) {
	m := relocation{candidate: c, most: most, left: make([]int, len(c.request.prices))}
	for d := range m.left {
		m.left[d] = len(c.request.workers[d]) - c.packing.used[d]
	}
	moved := make(map[int]bool)
	for _, n := range c.packing.open {
		if moved[n] = true; n != k {
			m.bins = append(m.bins, c.packing.bins[n])
		}
	}
	pieces := slices.Clone(c.packing.bins[k].pieces)
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(b.utilization(), a.utilization()) })
	for _, p := range pieces {
		if !m.host(p) {
			return nil, 0
		}
	}
	for n, b := range c.packing.bins {
		if n != k && !moved[n] {
			m.bins = append(m.bins, b)
		}
	}
	return m.bins, m.spent
}

// relocation moves pieces to other machines.
type relocation struct {
	*candidate
	most, spent float64
	left        []int // machines that may be rented, by type
	bins        []bin // with room, those rented for the relocation included
}

// host serves a piece elsewhere, in several parts if it must.
func (m *relocation) host(p piece) bool {
	for rest := p.rate; rest > roomTolerance*p.rate; {
		at, as := m.existingMachine(p, rest)
		if at < 0 {
			var ok bool
			if as, ok = m.newMachine(p, rest); !ok {
				return false
			}
			at = len(m.bins)
			m.bins = append(m.bins, m.request.bin(as.mode.Type))
			m.left[as.mode.Type]--
			m.spent += m.request.prices[as.mode.Type]
		}
		b := &m.bins[at]
		b.pieces = slices.Clip(b.pieces) // the memory is shared with other bins
		m.request.put(b, as)
		rest -= as.rate
	}
	return true
}

// existingMachine finds the bin that carries a rate of a piece's module at the least cost; at is -1 for none.
func (m *relocation) existingMachine(p piece, rate float64) (at int, as piece) {
	at = -1
	least := math.Inf(1)
	for k := range m.bins {
		b := &m.bins[k]
		if b.room <= roomTolerance {
			continue
		}
		m.eachMode(p, b.device, func(mode Mode) {
			one := piece{p.graph, p.stage, mode, rate, p.budget}
			if cost := one.utilization() * m.request.prices[b.device]; one.withinBudget() && m.request.fits(b, &one) &&
				cost < least*(1-roomTolerance) {
				at, as, least = k, one, cost
			}
		})
	}
	return at, as
}

// newMachine finds the machine to rent for a rate: the cheapest that carries all of it, and of these the one of which
// it takes least; else the one that carries most for its price, for as much as it carries.
func (m *relocation) newMachine(p piece, rate float64) (as piece, ok bool) {
	cheapest, part, most := math.Inf(1), math.Inf(1), 0.0
	complete := false
	for d, price := range m.request.prices {
		if m.left[d] <= 0 || m.spent+price > m.most {
			continue
		}
		m.eachMode(p, d, func(mode Mode) {
			one := piece{p.graph, p.stage, mode, min(rate, mode.Rate()), p.budget}
			if !one.withinBudget() {
				return
			}
			if all := rate <= mode.Rate()*(1+roomTolerance); all {
				if price < cheapest || price == cheapest && one.utilization() < part {
					as, ok, complete, cheapest, part = one, true, true, price, one.utilization()
				}
			} else if each := mode.Rate() / price; !complete && each > most {
				as, ok, most = one, true, each
			}
		})
	}
	return as, ok
}

// eachMode calls f for the modes of a piece's module on a type, including those that its solution leaves out.
func (m *relocation) eachMode(p piece, device int, f func(Mode)) {
	for _, mode := range m.solutions[p.graph].modes[p.stage] {
		if mode.Type == device {
			f(mode)
		}
	}
}

// withinBudget reports whether a piece keeps its module's budget.
func (p *piece) withinBudget() bool {
	return p.utilization() <= 1+roomTolerance && p.mode.WorstLatency(p.rate) <= p.budget
}
