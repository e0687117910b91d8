// Package kairos chooses machines of several types under a budget as Kairos (HPDC 2023, §5.2) does. It evaluates no
// pool. It ranks pools by an upper bound on the queries/s that each serves in time and chooses among the highest
// bounds. Upper is the paper's bound. Fluid is a bound of ours for any number of types, a linear program over sizes of
// queries.
package kairos

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Market is the types of machines that can be rented to serve one model, and everything that a bound is computed from.
// It does not change once it is made.
type Market struct {
	Types []Type
	Mix   serving.Mix
	// Within is the time in which a query is to be served: the objective less the slack.
	Within time.Duration
}

// Type is a type of machine in a market.
type Type struct {
	Name   string
	Device serving.DeviceTypeID
	Price  float64 // $/h
	Max    int     // machines that can be rented; 0 for as many as the budget pays
	// Latency is by class of the mix the believed mean run time of a query of that size.
	Latency []time.Duration
	// InTime is by class of the mix the share of runs that take at most Within. Nil derives it from the means: all runs
	// of a size whose mean is at most Within, and none of the others.
	InTime []float64
}

// NewMarket returns the market of all types of machines of spec for a variant, for queries that are to be served within
// a time. prices are by DeviceTypeID in $/h; nil takes those of spec. Parts of machines are no types of a market. It
// fails when the market is not valid. The market shares the slices of mix.
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

// Validate reports the first field of m that breaks the rules of its comment.
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

// Serves reports whether a type, by index, serves queries of a class in time, by the mean.
func (m *Market) Serves(t, class int) bool { return m.Types[t].Latency[class] <= m.Within }

// Region returns how many classes in a row, from the smallest up, a type (by index) serves in time. The size of the
// next class is s of §5.2. Classes after the first one that is late do not count, even if noise puts them below the
// objective.
func (m *Market) Region(t int) int {
	c := 0
	for c < m.Mix.Classes() && m.Serves(t, c) {
		c++
	}
	return c
}

// IsBase reports whether a type, by index, is a base type: one that serves every size in time. All others are
// auxiliary.
func (m *Market) IsBase(t int) bool { return m.Region(t) == m.Mix.Classes() }

// inTime returns the share of the queries of a class that a type serves in time.
func (m *Market) inTime(t, class int) float64 {
	switch {
	case m.Types[t].InTime != nil:
		return m.Types[t].InTime[class]
	case m.Serves(t, class):
		return 1
	}
	return 0
}

// Useful reports whether a type, by index, serves some size in time.
func (m *Market) Useful(t int) bool {
	for c := range m.Types[t].Latency {
		if m.inTime(t, c) > 0 {
			return true
		}
	}
	return false
}
