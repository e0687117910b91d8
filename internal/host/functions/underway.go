package functions

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
)

// Bounds of deployments that are under way.
const (
	// DefaultTimeout is how long a deployment may take that names no time, measuring and planning included.
	DefaultTimeout = 5 * time.Minute
	maxUnderway    = 16 // deployments at a time: a model that never ends keeps what it holds until it does
	// measureTurn is how long a measurement waits for those before it. Two side by side read long, but one that never
	// ends must hold up nobody.
	measureTurn = 10 * time.Second
	maxFailed   = 256 // names whose last deployment failed and is remembered
)

// The reasons why a deployment ends early.
var (
	errCancelled = errors.New("the deployment was cancelled")
	errReplaced  = errors.New("a later deployment of the same name took the place of this one")
	errTakesLong = errors.New("the deployment took longer than its timeout")
	errStopping  = errors.New("the server stops")
)

// underway holds the deployments that have not ended, one of a name at a time. It is safe for concurrent use.
type underway struct {
	mu     sync.Mutex
	byName map[string]*attempt
	failed map[string]string // why the last deployment of a name that has none failed
	closed bool
	ended  sync.WaitGroup

	measuring chan struct{} // holds a token for every predictor that runs, also of deployments that have ended
	turn      chan struct{} // held by the measurement whose turn it is
}

// attempt is a deployment that is under way.
type attempt struct {
	Progress
	cancel context.CancelCauseFunc
	done   chan struct{}
}

func newUnderway() *underway {
	return &underway{
		byName: make(map[string]*attempt), failed: make(map[string]string),
		measuring: make(chan struct{}, maxUnderway), turn: make(chan struct{}, 1),
	}
}

// run runs do as the deployment of a name, for at most timeout. An earlier one of the same name is cancelled first.
func (u *underway) run(ctx context.Context, name string, timeout time.Duration,
	do func(context.Context) error) error {
	a, ctx, err := u.begin(ctx, name, timeout)
	if err != nil {
		return err
	}
	timer := time.AfterFunc(timeout, func() { a.cancel(errTakesLong) })
	err = dataplane.Safely("deployment", func() error { return do(ctx) }) // others wait for its end
	timer.Stop()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = ended(cause, timeout)
	}
	a.cancel(nil)
	u.mu.Lock()
	delete(u.byName, name)
	u.note(name, err)
	u.mu.Unlock()
	close(a.done)
	u.ended.Done()
	return err
}

// ended returns the error of a deployment that was ended for a reason.
func ended(cause error, timeout time.Duration) error {
	switch {
	case errors.Is(cause, errTakesLong):
		return oip.Errorf(oip.Late, "model",
			"the deployment was given up after %v: the model may never end, or need a longer timeout_ms", timeout)
	case errors.Is(cause, errStopping):
		return oip.Errorf(oip.Unavailable, "", "%v", cause)
	case errors.Is(cause, errCancelled), errors.Is(cause, errReplaced):
		return oip.Errorf(oip.Gone, "", "%v", cause)
	}
	return cause
}

func (u *underway) begin(ctx context.Context, name string, timeout time.Duration) (*attempt, context.Context, error) {
	for {
		u.mu.Lock()
		was := u.byName[name]
		switch {
		case u.closed:
			u.mu.Unlock()
			return nil, nil, oip.Errorf(oip.Unavailable, "", "%v", errStopping)
		case was == nil && len(u.byName) >= maxUnderway:
			u.mu.Unlock()
			return nil, nil, oip.Errorf(oip.Unavailable, "",
				"%d deployments are under way: wait for one, or cancel it (DELETE %sNAME/deployment)", maxUnderway,
				PathFunctions)
		case was == nil:
			now := time.Now().UTC().Truncate(time.Millisecond)
			a := &attempt{Progress: Progress{Since: now, Until: now.Add(timeout)}, done: make(chan struct{})}
			ctx, a.cancel = context.WithCancelCause(ctx)
			u.byName[name] = a
			u.ended.Add(1)
			u.mu.Unlock()
			return a, ctx, nil
		}
		u.mu.Unlock()
		was.cancel(errReplaced)
		select {
		case <-was.done:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// note remembers why the deployment of a name failed; nil forgets it. u.mu is held.
func (u *underway) note(name string, err error) {
	if err == nil {
		delete(u.failed, name)
		return
	}
	if len(u.failed) >= maxFailed {
		for other := range u.failed {
			delete(u.failed, other)
			break
		}
	}
	u.failed[name] = err.Error()
}

// cancel ends the deployment of a name and waits until it has ended. It reports whether there was one.
func (u *underway) cancel(ctx context.Context, name string) (bool, error) {
	u.mu.Lock()
	a := u.byName[name]
	delete(u.failed, name)
	u.mu.Unlock()
	if a == nil {
		return false, nil
	}
	a.cancel(errCancelled)
	select {
	case <-a.done:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

// of returns the progress of the deployment of a name; nil when there is none. failed says why the last one failed.
func (u *underway) of(name string) (p *Progress, failed string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if a := u.byName[name]; a != nil {
		p = new(Progress)
		*p = a.Progress
	}
	return p, u.failed[name]
}

// names returns the names with a deployment under way.
func (u *underway) names() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.byName))
}

// close cancels all deployments, refuses new ones, and waits until all have ended.
func (u *underway) close() {
	u.mu.Lock()
	u.closed = true
	for _, a := range u.byName {
		a.cancel(errStopping)
	}
	u.mu.Unlock()
	u.ended.Wait()
}

// Measure runs do while no function is measured, and returns when it does or ctx ends.
func (m *Manager) Measure(ctx context.Context, do func()) error { return m.underway.measure(ctx, do) }

// measure runs do in its turn, and returns when do does or ctx ends. A do that does not end with ctx goes on by itself;
// as long as it does it counts against maxUnderway.
func (u *underway) measure(ctx context.Context, do func()) error {
	select {
	case u.measuring <- struct{}{}:
	default:
		return oip.Errorf(oip.Unavailable, "",
			"%d models are being measured and do not end: restart the server to be rid of them", maxUnderway)
	}
	mine := false
	wait := time.NewTimer(measureTurn)
	defer wait.Stop()
	select {
	case u.turn <- struct{}{}:
		mine = true
	case <-wait.C:
	case <-ctx.Done():
		<-u.measuring
		return ctx.Err()
	}
	finished := make(chan struct{})
	var failed error
	go func() {
		defer func() {
			if mine {
				<-u.turn
			}
			<-u.measuring
			close(finished)
		}()
		failed = dataplane.Safely("runtime", func() error { do(); return nil })
	}()
	select {
	case <-finished:
		return failed
	case <-ctx.Done():
		return ctx.Err()
	}
}
