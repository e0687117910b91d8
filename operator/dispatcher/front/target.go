package front

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/operator/dispatcher/runner"
)

// errNotFound says that no cell has an app.
var errNotFound = errors.New("not found")

// target is where a query goes: a run of this process, or another pod.
type target struct {
	place
	run *runner.Run // nil for another pod
}

// done ends the use of a target.
func (t *target) done() {
	if t.run != nil {
		t.run.Done()
	}
}

// unavailable says that nobody serves an app at the moment.
type unavailable struct {
	model string
	why   string
	here  bool // this pod was asked by another one, and does not serve the cell
}

func (u *unavailable) Error() string {
	return fmt.Sprintf("model %q cannot be served at the moment, try again: %s", u.model, u.why)
}

// resolve finds the target of a query. Where nobody serves its cell, it waits until somebody does, up to Config.Hold
// and as long as not too many wait. passed says that another pod has passed the query on: then only a run of this
// process will do. avoid is the holder that could not be reached just now; it is asked again only after the table has
// changed.
func (f *Front) resolve(ctx context.Context, model string, passed bool, avoid string) (target, error) {
	v := f.table.view.Load()
	if t, ok := f.now(v, model, passed, avoid); ok {
		return t, nil
	}
	return f.wait(ctx, model, passed, avoid, v)
}

// now finds a target without waiting.
func (f *Front) now(v *view, model string, passed bool, avoid string) (target, bool) {
	list := v.apps[model]
	if len(list) == 0 {
		return target{}, false
	}
	p := pick(list)
	if passed { // whoever passed it on saw this pod hold one of the app's cells
		for _, p := range list {
			if r := f.use(p.cell, model); r != nil {
				return target{p, r}, true
			}
		}
		return target{}, false
	}
	if p.mine {
		if r := f.use(p.cell, model); r != nil {
			return target{p, r}, true
		}
		return target{}, false
	}
	if p.holder.Identity == "" || p.holder.Identity == avoid || !f.reaches(p.holder) {
		return target{}, false
	}
	return target{p, nil}, true
}

// use returns the run here that answers for an app of a cell, or nil. One of an earlier configuration lacks an app that
// was just added, until the next run has taken over.
func (f *Front) use(cell int, model string) *runner.Run {
	r := f.c.Runs.Use(cell)
	if r == nil || r.Has(model) {
		return r
	}
	r.Done()
	return nil
}

// starts reports whether a run of this process is to get an app that it does not have yet.
func (f *Front) starts(v *view, model string) bool {
	for _, p := range v.apps[model] {
		if r := f.c.Runs.Use(p.cell); r != nil {
			r.Done()
			return !r.Has(model)
		}
	}
	return false
}

// wait is resolve for a query whose cell nobody serves.
func (f *Front) wait(ctx context.Context, model string, passed bool, avoid string, v *view) (target, error) {
	hold := f.c.Hold
	if passed {
		hold = min(hold, passedHold)
	}
	limit := time.NewTimer(hold)
	defer limit.Stop()
	again := time.NewTimer(reachAgain)
	defer again.Stop()
	waiting := false
	defer func() {
		if waiting {
			f.waiting.Add(-1)
		}
	}()
	for {
		if v.known && len(v.apps[model]) == 0 {
			return target{}, errNotFound
		}
		if t, ok := f.now(v, model, passed, avoid); ok {
			return t, nil
		}
		if !waiting {
			if f.waiting.Add(1) > int64(f.c.Waiting) {
				f.waiting.Add(-1)
				return target{}, &unavailable{model, fmt.Sprintf("its cell has no dispatcher now, and %d queries wait "+
					"for theirs already", f.c.Waiting), passed}
			}
			waiting = true
			f.metrics.held.Inc()
		}
		select {
		case <-v.changed:
			v = f.table.view.Load()
		case <-again.C:
			avoid = ""
		case <-limit.C:
			why := "its cell has no dispatcher now"
			switch {
			case f.starts(v, model):
				why = "its dispatcher is making it ready"
			case passed:
				why = "this dispatcher does not serve its cell"
			}
			return target{}, &unavailable{model, why, passed}
		case <-ctx.Done():
			return target{}, ctx.Err()
		}
	}
}

// passedHold is how long a query that was passed on waits here: the pod that sent it waits itself.
const passedHold = time.Second

// reachAgain is when a pod that could not be reached is asked again, unless another one has its cell by then.
const reachAgain = 250 * time.Millisecond
