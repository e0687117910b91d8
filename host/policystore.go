package host

import (
	"fmt"
	"sync"

	"github.com/sluice-serving/sluice/host/store"
	"github.com/sluice-serving/sluice/measure/quantity"
)

// PoliciesFolder is the folder beside the sluice.yaml in which planners keep the policies that they have made.
const PoliciesFolder = "sluice.policies"

// policyStore is where a configuration's policies are kept, and who hears of those that had to be made. Planners call
// made; in a server they do so from a goroutine of their own.
type policyStore struct {
	store   *store.Policies
	dir     string
	options Options

	mu         sync.Mutex
	hear       func(rate float64) // in place of the options; nil for these
	progress   madeShare
	announced  bool // that policies are made
	complained bool // that they are not kept
}

func newPolicyStore(dir string, options Options) *policyStore {
	return &policyStore{store: store.OpenPolicies(dir), dir: dir, options: options}
}

// Policies are those that this configuration's planners have made and kept.
func (o *Opened) Policies() *store.Policies { return o.policies.store }

// PoliciesPath is the folder of [Opened.Policies]. It is there once one is kept.
func (o *Opened) PoliciesPath() string { return o.policies.dir }

// made is systems.World.Made.
func (p *policyStore) made(rate float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hear != nil {
		p.hear(rate)
		return
	}
	if !p.announced {
		p.announced = true
		p.options.Notice(fmt.Sprintf("making policies for this profile; they are kept in %s", p.dir))
	}
	share := p.progress.add(rate)
	p.options.Progress(share, fmt.Sprintf("policy %d, for %s", p.progress.n, quantity.Rate(rate)))
	if err := p.trouble(); err != nil {
		p.options.Notice(fmt.Sprintf("warning: %v", err))
	}
}

// hearOf has policies told to another from now on. p.mu is held while it is.
func (p *policyStore) hearOf(hear func(rate float64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hear = hear
}

// trouble returns what kept policies from being kept, once. p.mu is held.
func (p *policyStore) trouble() error {
	err := p.store.Err()
	if err == nil || p.complained {
		return nil
	}
	p.complained = true
	return err
}

// madeShare estimates how much of a set of policies is made. A set is made by halving: its lowest rate, its highest,
// then always what is left of a gap before what is right of it, so that all below the next lower rate is there.
type madeShare struct {
	n         int
	low, high float64
	rates     []float64
	share     float64
}

func (s *madeShare) add(rate float64) float64 {
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
