package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// The world may grow while it runs: apps and versions are added at the end of the tables, closed and retired in place.

// planAgain is how long after a failure a plan for a world that has grown is asked for again.
const planAgain = time.Second

// grow takes up a larger world. A plan that is being made for the smaller one will be dropped, as one from an old
// snapshot is.
func (e *Engine) grow(g *Growth) {
	if g == nil || g.Spec == nil || g.Profile == nil && e.learner == nil {
		e.blame(errors.New("engine: growth without a spec or a profile"))
		return
	}
	if err := errors.Join(g.Spec.Validate(), g.Spec.Grows(e.spec)); err != nil {
		e.blame(fmt.Errorf("engine: growth: %w", err))
		return
	}
	e.shiftTimers(len(e.spec.Stages), len(g.Spec.Stages))
	for a := range g.Spec.Apps {
		if id := serving.AppID(a); g.Spec.Apps[a].Closed && a < len(e.pending) && e.pending[a] > 0 &&
			!slices.Contains(e.leaving, id) {
			e.leaving = append(e.leaving, id)
		}
	}
	e.spec, e.altered = g.Spec, true
	if e.learner != nil {
		e.learner.Grow(g.Spec, g.Profile)
		e.widen(e.profile)
	} else {
		e.widen(g.Profile)
	}
	e.fleet.Grow(e.spec, e.profile)
	e.monitor.Grow(len(e.spec.Apps))
	e.waiting = lengthened(e.waiting, len(e.spec.Apps))
	e.pending = lengthened(e.pending, len(e.spec.Apps))
	for len(e.idle) < len(e.spec.Apps) {
		e.idle = append(e.idle, e.now)
	}
	e.models = lengthened(e.models, len(e.spec.Variants))
	e.place = lengthened(e.place, len(e.spec.Stages))
	for _, a := range e.spec.Apps {
		for at, s := range a.Stages {
			e.place[s] = at
		}
	}
	e.streams.grow(e.spec)
	e.outdated()
	e.retime()
	e.request++
	e.asked, e.grown, e.again = false, true, 0
	e.shifted, e.scaleDirty = e.now, true
}

func lengthened[T any](s []T, n int) []T { return append(s, make([]T, n-len(s))...) }

// shiftTimers makes room for the queues of more stages: timers of instances come after them.
func (e *Engine) shiftTimers(from, to int) {
	type timer struct {
		at   int
		when int64
	}
	var moved []timer
	for {
		at, when, ok := e.timers.Min()
		if !ok {
			break
		}
		e.timers.Remove(at)
		if at >= from {
			at += to - from
		}
		moved = append(moved, timer{at, when})
	}
	for _, t := range moved {
		e.timers.Set(t.at, t.when)
	}
}

// budgeted is tailsOf the plan's budgets; stages that the plan does not know yet take the least time they need.
func (e *Engine) budgeted() []time.Duration {
	return e.tailsOf(func(s serving.StageID) time.Duration {
		if int(s) < len(e.plan.Budgets) {
			return e.plan.Budgets[s]
		}
		return e.least(s)
	})
}

// awaited tells whether a stage's app is closed and has queries yet to be answered.
func (e *Engine) awaited(s serving.StageID) bool {
	return slices.Contains(e.leaving, e.spec.Stages[s].App)
}

// seeOff follows closed apps until their last query has ended; it tells whether something has changed. What nothing is
// left to serve, because memory was needed or the last instance was lost, ends here.
func (e *Engine) seeOff() bool {
	was, ended := len(e.leaving), len(e.out)
	for _, a := range e.leaving {
		for _, s := range e.spec.Apps[a].Stages {
			if e.fleet.Central(s).Len()+e.fleet.Turns(s).Len() > 0 {
				e.sweep(s, true)
			}
		}
	}
	e.leaving = slices.DeleteFunc(e.leaving, func(a serving.AppID) bool { return e.pending[a] == 0 })
	if len(e.leaving) < was && e.transition {
		e.retire()
	}
	return len(e.leaving) < was || len(e.out) > ended
}
