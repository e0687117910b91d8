package scrooge

import (
	"fmt"
	"slices"
	"time"
)

// Sizes beyond which a problem is refused.
const (
	MaxModules = 64
	MaxModes   = 1 << 14 // of a module
	MaxBatch   = 1 << 16
	MaxSlots   = 1 << 10
	// MaxRate is in items/s.
	MaxRate = 1e9
	// MinPrice and MaxPrice are in $/h. Beyond them sums of floats lose their small terms.
	MinPrice = 1e-9
	MaxPrice = 1e9
	// MaxTime is the longest objective and the longest time of a batch.
	MaxTime = 24 * time.Hour
)

// Check reports the first thing about the problem that is not well formed. All functions that solve a problem call it.
func (p *Problem) Check() error {
	if p.SLO <= 0 || p.SLO > MaxTime {
		return fmt.Errorf("problem: SLO is %v, want more than 0 and at most %v", p.SLO, MaxTime)
	}
	if len(p.Modules) == 0 || len(p.Modules) > MaxModules {
		return fmt.Errorf("problem: %d modules, want 1 to %d", len(p.Modules), MaxModules)
	}
	for t, price := range p.Prices {
		if !(price >= MinPrice && price <= MaxPrice) {
			return fmt.Errorf("problem: price of type %d is %v $/h, want %v to %v", t, price, MinPrice,
				float64(MaxPrice))
		}
	}
	for i := range p.Modules {
		if err := p.checkModule(i); err != nil {
			return fmt.Errorf("problem: module %d: %w", i, err)
		}
	}
	return nil
}

func (p *Problem) checkModule(i int) error {
	m := &p.Modules[i]
	if !(m.Rate >= 0) || m.Rate > MaxRate {
		return fmt.Errorf("rate is %v items/s, want 0 to %v", m.Rate, float64(MaxRate))
	}
	for k, n := range m.Next {
		if n <= i || n >= len(p.Modules) {
			return fmt.Errorf("feeds module %d, want a later one of %d", n, len(p.Modules))
		}
		if slices.Contains(m.Next[:k], n) {
			return fmt.Errorf("feeds module %d twice", n)
		}
	}
	if len(m.Modes) > MaxModes {
		return fmt.Errorf("%d modes, at most %d are taken", len(m.Modes), MaxModes)
	}
	for k := range m.Modes {
		x := &m.Modes[k]
		switch {
		case x.Type < 0 || x.Type >= len(p.Prices):
			return fmt.Errorf("mode %d is of type %d of %d", k, x.Type, len(p.Prices))
		case x.Batch < 1 || x.Batch > MaxBatch:
			return fmt.Errorf("mode %d has batches of %d, want 1 to %d", k, x.Batch, MaxBatch)
		case x.Slots < 1 || x.Slots > MaxSlots:
			return fmt.Errorf("mode %d runs %d batches at once, want 1 to %d", k, x.Slots, MaxSlots)
		case x.Latency <= 0 || x.Latency > MaxTime:
			return fmt.Errorf("mode %d takes %v, want more than 0 and at most %v", k, x.Latency, MaxTime)
		}
	}
	return nil
}

// Only returns the problem with the modes that keep accepts: without a type that cannot be rented (§3.4), or without
// spatial multiplexing (§4.4, see OneSlot). Use.Mode of its allocations indexes its own modes; Mode.Tag is still the
// caller's.
func (p *Problem) Only(keep func(m *Mode) bool) *Problem {
	out := &Problem{SLO: p.SLO, Prices: p.Prices}
	for _, m := range p.Modules {
		modes := m.Modes
		m.Modes = nil
		for k := range modes {
			if keep(&modes[k]) {
				m.Modes = append(m.Modes, modes[k])
			}
		}
		out.Modules = append(out.Modules, m)
	}
	return out
}

// OneSlot reports whether a mode runs one batch at a time, without spatial multiplexing. It is an argument for
// Problem.Only.
func OneSlot(m *Mode) bool { return m.Slots == 1 }

// pricePerItem returns the $/h of carrying one item/s in a mode: machines are paid by the part that is used (2a).
func (p *Problem) pricePerItem(m *Mode) float64 { return p.Prices[m.Type] / m.Rate() }
