package dataplane

import (
	"errors"
	"sync"

	"github.com/sluice-serving/sluice/tensor"
)

// partials hands the answers of a model that gives any number of them to a query's caller: in one run of the query
// alone, and not once the query has ended.
type partials struct {
	to    func([]tensor.Tensor)
	limit int64 // bytes of one answer

	mu     sync.Mutex
	begun  bool // an answer was handed on
	run    int  // counts the runs
	closed bool
}

var (
	errRunAgain = errors.New("some of its answers were given already: it is not run again")
	errEnded    = errors.New("the query has ended")
)

// next returns what a run of the query hands its answers to. wanted names the outputs of each; nil for all.
func (p *partials) next(wanted []string) func([]tensor.Tensor) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run++
	run := p.run
	return func(outputs []tensor.Tensor) error {
		outputs = only(outputs, wanted)
		if err := within(outputs, p.limit); err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case p.closed:
			return errEnded
		case p.begun && run > 1 || run != p.run:
			return errRunAgain
		}
		p.begun = true
		p.to(outputs)
		return nil
	}
}

// close waits for an answer that is being handed on, and lets no further one through. A nil receiver does nothing.
func (p *partials) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}
