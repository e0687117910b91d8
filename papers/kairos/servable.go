package kairos

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// ErrTooSlow says that no type of a market serves every size of query in time, so that there is no base type.
var ErrTooSlow = errors.New("no type of machine serves every size of query in time")

// ExplainNoBase says why a market has no base type: it names the smallest size that the type with the largest region
// does not serve in time, and the type that is fastest at it. It returns nil when there is a base type or no type at
// all. The error wraps ErrTooSlow.
func (m *Market) ExplainNoBase() error {
	at := m.largestRegion()
	if at < 0 || m.IsBase(at) {
		return nil
	}
	c := m.Region(at)
	items, _ := m.Mix.Class(c)
	fastest := at
	for t := range m.Types {
		if m.Types[t].Latency[c] < m.Types[fastest].Latency[c] {
			fastest = t
		}
	}
	took := m.Types[fastest].Latency[c]
	if took >= profile.Unknown {
		return fmt.Errorf("%w: none takes queries of %d items: raise max_batch or split them", ErrTooSlow, items)
	}
	return fmt.Errorf(
		"%w: %d items take %v on the fastest, %q, and the objective leaves %v: raise it, add a faster type, or split "+
			"such queries",
		ErrTooSlow, items, took.Round(10*time.Microsecond), m.Types[fastest].Name, m.Within)
}

// largestRegion returns the type with the largest region, of several the first; -1 when there is no type.
func (m *Market) largestRegion() int {
	at := -1
	for t := range m.Types {
		if at < 0 || m.Region(t) > m.Region(at) {
			at = t
		}
	}
	return at
}

// Servable returns m without the sizes that cannot be planned for, and the share of the queries of these sizes. Eq. 15
// needs a base type, so it excludes sizes beyond the largest region. With fluid, only sizes that no type serves are
// excluded, and only if they are more than the share late. Servable returns nil when nothing can be served, and m
// itself when nothing is excluded. The paper assumes a base type.
func (m *Market) Servable(fluid bool, late float64) (*Market, float64) {
	at := m.largestRegion()
	if at < 0 {
		return nil, 1
	}
	keep := make([]bool, m.Mix.Classes())
	without := 0.0
	for c := range keep {
		keep[c] = c < m.Region(at)
		for t := range m.Types {
			keep[c] = keep[c] || fluid && m.inTime(t, c) > 0
		}
		if !keep[c] {
			_, share := m.Mix.Class(c)
			without += share
		}
	}
	switch {
	case without == 0:
		return m, 0
	case without >= 1-rounding:
		return nil, 1
	case fluid && without <= late:
		return m, 0 // the program leaves them out itself
	}
	out := &Market{Within: m.Within, Mix: serving.Mix{Count: m.Mix.Count}}
	for c, kept := range keep {
		if items, share := m.Mix.Class(c); kept {
			out.Mix.Sizes = append(out.Mix.Sizes, int32(items))
			out.Mix.Shares = append(out.Mix.Shares, share/(1-without))
		}
	}
	for _, t := range m.Types {
		took, in := t.Latency, t.InTime
		t.Latency, t.InTime = nil, nil
		for c, kept := range keep {
			if kept {
				t.Latency = append(t.Latency, took[c])
				if in != nil {
					t.InTime = append(t.InTime, in[c])
				}
			}
		}
		out.Types = append(out.Types, t)
	}
	return out, without
}
