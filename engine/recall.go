package engine

import "github.com/sluice-serving/sluice/serving"

// The idle times that a scaler has learned may outlive the run: the driver reads them now and then, stores them, and
// gives them to a later engine.

// learned counts what the scaler has learned of an app, and returns since when the app has been idle.
func (r *replanning) learned(a serving.AppID) (n int, idle serving.Time) {
	if k := r.traits.Recaller; k != nil {
		n = k.Learned(a)
	}
	return n, r.queries.idle[a]
}

// remember returns a record of the scaler's knowledge of an app's idle times at now; nil for none.
func (r *replanning) remember(a serving.AppID, now serving.Time) []byte {
	if k := r.traits.Recaller; k != nil {
		return k.Remember(a, now)
	}
	return nil
}

// recall gives the scaler what was learned before, for an app that was not called since. A record that the scaler
// cannot read is ignored; the driver checks it before.
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
