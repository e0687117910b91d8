package engine

import "github.com/sluice-serving/sluice/serving"

// What a scaler has learned of an app's idle times may outlive the run: the driver asks for it now and then, keeps it,
// and tells a later engine of it.

// learned counts what the scaler has learned of an app, and tells since when the app has had nothing to do.
func (r *replanning) learned(a serving.AppID) (n int, idle serving.Time) {
	if k := r.traits.Recaller; k != nil {
		n = k.Learned(a)
	}
	return n, r.queries.idle[a]
}

// remember returns what the scaler knows of an app's idle times at now; nil for nothing.
func (r *replanning) remember(a serving.AppID, now serving.Time) []byte {
	if k := r.traits.Recaller; k != nil {
		return k.Remember(a, now)
	}
	return nil
}

// recall takes up what was learned before, of an app that was not called since. What the scaler cannot read is as if it
// had not been there: the driver asks it before.
func (r *replanning) recall(x *Recalled) {
	k := r.traits.Recaller
	if k == nil || x == nil || x.App < 0 || int(x.App) >= len(r.queries.idle) || k.Learned(x.App) > 0 {
		return
	}
	if k.Recall(x.App, x.Memory, r.now, x.Older) == nil {
		r.queries.idleSince(x.App, r.now.Add(-x.Idle))
		r.agenda.scaler = true
	}
}
