// Package kairos chooses machines of several types under a budget as Kairos (HPDC 2023, §5.2) does: without trying a
// pool, by an upper bound on what each can serve in time and by where the pools with the highest bounds lie. Beside the
// paper's bound stands one of ours, a linear program over sizes of queries, which holds for any number of types.
package kairos

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Market is what can be rented to serve one model, and all that a bound is computed from. It is not changed once made.
type Market struct {
	Types []Type
	Mix   serving.Mix
	// Within is the time in which a query is to be served: the objective less what is kept free.
	Within time.Duration
}

// Type is a type of machine in a market.
type Type struct {
	Name   string
	Device serving.DeviceTypeID
	Price  float64 // $/h
	Max    int     // machines that can be had; 0 for as many as the budget pays
	// Took is, by class of the mix, how long a query of that size is believed to take on average.
	Latency []time.Duration
	// InTime is, by class of the mix, the share of the runs that take at most Within. Nil takes the averages for all
	// there is: every run of a size whose average is within, and no run of any other.
	InTime []float64
}

// Pool is how many machines of each type of a market are rented, by position in Types.
type Pool []int

// NewMarket returns the market of all types of machines of spec for a variant. Prices are by DeviceTypeID in $/h; nil
// takes those of spec.
func NewMarket(believed profile.Profile, spec *serving.Spec, v serving.VariantID, mix *serving.Mix, prices []float64,
	within time.Duration) (*Market, error) {
	m := &Market{Mix: *mix, Within: within}
	asked := plan.Request{Spec: spec, Prices: prices}
	for d, device := range spec.DeviceTypes {
		if device.Part {
			continue // no machine by itself
		}
		id := serving.DeviceTypeID(d)
		t := Type{Name: device.Name, Device: id, Price: asked.Price(id), Max: device.MaxMachines}
		for c := range mix.Classes() {
			items, _ := mix.Class(c)
			t.Latency = append(t.Latency, believed.Latency(v, t.Device, items, 1))
		}
		m.Types = append(m.Types, t)
	}
	return m, m.Validate()
}

// Validate reports the first thing about m that its fields forbid.
func (m *Market) Validate() error {
	if err := m.Mix.Validate(); err != nil {
		return fmt.Errorf("mix: %w", err)
	}
	if m.Within <= 0 {
		return fmt.Errorf("queries are to be served within %v: want a positive time", m.Within)
	}
	for _, t := range m.Types {
		if !(t.Price >= 0) || math.IsInf(t.Price, 0) {
			return fmt.Errorf("%q costs %v $/h, want a finite number of at least 0", t.Name, t.Price)
		}
		if t.Max < 0 {
			return fmt.Errorf("of %q at most %d can be had, want at least 0", t.Name, t.Max)
		}
		if len(t.Latency) != m.Mix.Classes() || t.InTime != nil && len(t.InTime) != len(t.Latency) {
			return fmt.Errorf("%q: %d latencies and %d shares in time for %d sizes of queries", t.Name, len(t.Latency),
				len(t.InTime), m.Mix.Classes())
		}
		for c, took := range t.Latency {
			items, _ := m.Mix.Class(c)
			if took <= 0 {
				return fmt.Errorf("%q takes %v for %d items, want a positive time", t.Name, took, items)
			}
			if t.InTime != nil && !(t.InTime[c] >= 0 && t.InTime[c] <= 1) {
				return fmt.Errorf("%q is in time with %v of the queries of %d items, want a share", t.Name, t.InTime[c],
					items)
			}
		}
	}
	return nil
}

// Serves tells whether a type serves queries of a class in time, by the average.
func (m *Market) Serves(t, class int) bool { return m.Types[t].Latency[class] <= m.Within }

// Region returns how many classes, from the smallest, a type serves in time without a gap: the size of the next is s of
// §5.2, the smallest that it does not. A larger size that noise has put below the objective again does not count.
func (m *Market) Region(t int) int {
	c := 0
	for c < m.Mix.Classes() && m.Serves(t, c) {
		c++
	}
	return c
}

// Base tells whether a type is a base type: one that serves every size in time. All others are auxiliary.
func (m *Market) Base(t int) bool { return m.Region(t) == m.Mix.Classes() }

// chance is the share of the queries of a class that a type serves in time.
func (m *Market) inTime(t, class int) float64 {
	switch {
	case m.Types[t].InTime != nil:
		return m.Types[t].InTime[class]
	case m.Serves(t, class):
		return 1
	}
	return 0
}

// Useful tells whether a type serves any size in time.
func (m *Market) Useful(t int) bool {
	for c := range m.Types[t].Latency {
		if m.inTime(t, c) > 0 {
			return true
		}
	}
	return false
}

// Cost returns what a pool costs, in $/h.
func (m *Market) Cost(p Pool) (cost float64) {
	for t, n := range p {
		cost += float64(n) * m.Types[t].Price
	}
	return cost
}

// PartOf tells whether p is a sub-configuration of q (§5.2): machines can be added to p to get q.
func (p Pool) SubsetOf(q Pool) bool {
	for t, n := range p {
		if n > q[t] {
			return false
		}
	}
	return true
}

// Machines returns the number of machines of a pool.
func (p Pool) Machines() (n int) {
	for _, k := range p {
		n += k
	}
	return n
}

// mostPools is how many pools are listed at most: beyond it ranking takes seconds, and memory goes by the hundred
// megabytes.
const maxPools = 2_000_000

// rounding forgives what adding prices in floating point is off by: five machines of 0.5 $/h cost 2.5 $/h.
const rounding = 1e-9

// ErrEndless tells that neither the budget nor a limit bounds how many machines could be rented.
var ErrUnbounded = errors.New("neither a budget nor a limit bounds how many machines can be rented")

// Pools returns all pools of at least one machine that cost at most budget, in $/h, in lexicographic order. A budget of
// 0 is none: the limits of the types bound the pools. Machines that serve nothing in time are not rented.
func (m *Market) Pools(budget float64) ([]Pool, error) {
	if !(budget >= 0) || math.IsInf(budget, 0) {
		return nil, fmt.Errorf("the budget is %v $/h, want a finite number of at least 0, which is no limit", budget)
	}
	left := budget * (1 + rounding)
	if budget == 0 {
		left = math.Inf(1)
	}
	most := make(Pool, len(m.Types))
	for t := range m.Types {
		if !m.Useful(t) {
			continue
		}
		x := &m.Types[t]
		most[t] = x.Max
		if x.Price > 0 && !math.IsInf(left, 1) {
			fits := int(min(left/x.Price, maxPools))
			if most[t] == 0 || most[t] > fits {
				most[t] = fits
			}
		} else if most[t] == 0 {
			return nil, fmt.Errorf("%q at %v $/h: %w: set a budget and a price, or how many there are at most", x.Name,
				x.Price, ErrUnbounded)
		}
	}
	var out []Pool
	var block []int // pools are cut out of it
	at := make(Pool, len(m.Types))
	var fill func(t int, left float64) bool
	fill = func(t int, left float64) bool {
		if t == len(at) {
			if at.Machines() == 0 {
				return true
			}
			if len(out) == maxPools {
				return false
			}
			if len(block) < len(at) {
				block = make([]int, 1024*len(at))
			}
			p := Pool(block[:len(at):len(at)])
			block = block[len(at):]
			copy(p, at)
			out = append(out, p)
			return true
		}
		price := m.Types[t].Price
		for n := 0; n <= most[t] && float64(n)*price <= left; n++ {
			at[t] = n
			if !fill(t+1, left-float64(n)*price) {
				return false
			}
		}
		at[t] = 0
		return true
	}
	if !fill(0, left) {
		return nil, fmt.Errorf("more than %d pools cost at most %v $/h: lower the budget, or say how many machines "+
			"of a type there are at most", maxPools, budget)
	}
	return out, nil
}
