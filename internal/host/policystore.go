package host

import (
	"fmt"
	"sync"

	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
)

// PoliciesFolder is the folder beside the sluice.yaml in which planners keep policies.
const PoliciesFolder = "sluice.policies"

// policyStore keeps a configuration's policies and reports those that planners make. Planners call made, in a server
// from a goroutine of their own.
type policyStore struct {
	store   *store.Policies
	dir     string
	options Options

	mu         sync.Mutex
	redirected func(rate float64) // gets the reports in place of the options; nil for the options
	progress   madeShare
	announced  bool // that policies are made
	complained bool // that they are not kept
}

func newPolicyStore(dir string, options Options) *policyStore {
	return &policyStore{store: store.OpenPolicies(dir), dir: dir, options: options}
}

// Policies is the store in which the planners of this configuration keep policies.
func (o *Opened) Policies() *store.Policies { return o.policies.store }

// PoliciesPath is the folder of [Opened.Policies]. It is made when the first policy is kept.
func (o *Opened) PoliciesPath() string { return o.policies.dir }

// made is systems.PlannerInputs.Made.
func (p *policyStore) made(rate float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.redirected != nil {
		p.redirected(rate)
		return
	}
	if !p.announced {
		p.announced = true
		p.options.Notice(fmt.Sprintf("making policies for this profile; they are kept in %s", p.dir))
	}
	share := p.progress.add(rate)
	p.options.Progress(share, fmt.Sprintf("policy %d, for %s", p.progress.n, quantity.Rate(rate)))
	if err := p.newError(); err != nil {
		p.options.Notice(fmt.Sprintf("warning: %v", err))
	}
}

// redirect sets the function that made policies are reported to; nil means that of the options. The function is called
// with p.mu held.
func (p *policyStore) redirect(to func(rate float64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.redirected = to
}

// newError returns the error of the store unless it has been returned before. p.mu is held.
func (p *policyStore) newError() error {
	err := p.store.Err()
	if err == nil || p.complained {
		return nil
	}
	p.complained = true
	return err
}

// madeShare estimates the share of a set of policies that is made. A set is made by halving: the lowest rate, the
// highest, then always the lower half of a gap before the upper one. All policies below the next lower rate are made.
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
		// Never 1, because another set may follow.
		s.share = max(s.share, 0.99*(below-s.low)/(s.high-s.low))
	}
	return s.share
}

// OnPolicy has policies that planners make from now on told to tell, with the error that keeps one from being kept. Nil
// has the user told again.
func (o *Opened) OnPolicy(tell func(rate float64, err error)) {
	if tell == nil {
		o.policies.redirect(nil)
		return
	}
	o.policies.redirect(func(rate float64) { tell(rate, o.policies.newError()) })
}
