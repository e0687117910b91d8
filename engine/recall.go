package engine

import (
	"time"

	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
)

// What a scaler has learned of an app's idle times may outlive the run: the driver asks for it now and then, keeps it,
// and tells a later engine of it.

// Recalled is what was learned of an app in an earlier run.
type Recalled struct {
	App    serving.AppID
	Memory []byte        // as Remember returned it
	Older  time.Duration // since then
	Idle   time.Duration // that the app has had nothing to do, at least Older
}

// Learned counts what the scaler has learned of an app, and tells since when the app has had nothing to do,
// serving.Never while it has. What Remember returns is another when one of them has changed.
func (e *Engine) Learned(a serving.AppID) (n int, idle serving.Time) {
	if r, ok := e.scaler.(scale.Recaller); ok {
		n = r.Learned(a)
	}
	return n, e.idle[a]
}

// Remember returns what the scaler knows of an app's idle times at now; nil where it knows nothing or does not learn.
func (e *Engine) Remember(a serving.AppID, now serving.Time) []byte {
	if r, ok := e.scaler.(scale.Recaller); ok {
		return r.Remember(a, now)
	}
	return nil
}

// recall takes up what was learned before, of an app that was not called since. What the scaler cannot read is as if it
// had not been there: the driver asks it before.
func (e *Engine) recall(x *Recalled) {
	r, ok := e.scaler.(scale.Recaller)
	if !ok || x == nil || x.App < 0 || int(x.App) >= len(e.idle) || r.Learned(x.App) > 0 {
		return
	}
	if r.Recall(x.App, x.Memory, e.now, x.Older) == nil {
		e.idle[x.App] = e.now.Add(-x.Idle)
		e.scaleDirty = true
	}
}
