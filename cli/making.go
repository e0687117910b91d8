package cli

import (
	"fmt"
	"sync"

	"github.com/sluice-serving/sluice/host/store"
	"github.com/sluice-serving/sluice/planner/ramsis"
)

// policiesFolder is where policies are kept between runs, beside the sluice.yaml.
const policiesFolder = "sluice.policies"

// making is a world's store of policies and who is told of those that had to be made. A planner calls it, in a server
// from a goroutine of its own.
type making struct {
	store   *store.Policies
	through ramsis.Store // stands before store; nil for nothing
	dir     string

	mu   sync.Mutex
	told func(rate float64)
	said bool // that policies are made and kept
	warn bool // trouble was told
}

func newMaking(dir string) *making { return &making{store: store.OpenPolicies(dir), dir: dir} }

// keeps is systems.World.Policies.
func (m *making) keeps() ramsis.Store {
	if m.through != nil {
		return m.through
	}
	return m.store
}

// made is systems.World.Made.
func (m *making) made(rate float64) {
	m.mu.Lock()
	told := m.told
	m.mu.Unlock()
	if told != nil {
		told(rate)
	}
}

// tell has policies told of from now on; nil for no more.
func (m *making) tell(told func(rate float64)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = told
}

// trouble returns what kept policies from being kept, once.
func (m *making) trouble() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.store.Err()
	if err == nil || m.warn {
		return nil
	}
	m.warn = true
	return err
}

// wait shows on bar what is made until the returned function is called.
func (m *making) wait(e *Env, bar *progress) (done func()) {
	var s spaced
	m.tell(func(rate float64) {
		if !m.said {
			m.said = true
			bar.done()
			fmt.Fprintf(e.Stderr, "making policies for this profile; they are kept in %s\n", m.dir)
		}
		share := s.add(rate)
		bar.show(share, fmt.Sprintf("policy %d, for %s", s.n, rateText(rate)))
	})
	return func() {
		m.tell(nil)
		bar.done()
		if err := m.trouble(); err != nil {
			fmt.Fprintf(e.Stderr, "warning: %v\n", err)
		}
	}
}

// spaced estimates how much of a set of policies is made. A set is made by halving: its lowest rate, its highest, then
// always what is left of a gap before what is right of it, so that all below the next lower rate is there.
type spaced struct {
	n         int
	low, high float64
	rates     []float64
	share     float64
}

func (s *spaced) add(rate float64) float64 {
	if s.n++; s.n == 1 {
		s.low, s.high = rate, rate
	}
	s.low, s.high = min(s.low, rate), max(s.high, rate)
	below := s.low
	for _, r := range s.rates {
		if r < rate {
			below = max(below, r)
		}
	}
	s.rates = append(s.rates, rate)
	if s.n > 2 && s.high > s.low {
		// Never all of it: where there are several sets, another may follow.
		s.share = max(s.share, 0.99*(below-s.low)/(s.high-s.low))
	}
	return s.share
}
