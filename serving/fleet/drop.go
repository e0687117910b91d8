package fleet

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// centralDrop is the latest start of a task that waits at its stage: what the fastest ready instance could still make,
// and LatestEnd while nothing ready may serve it. A task that waits for a cold start has as long as that may take, and
// no longer while nothing is ready: perhaps nothing ever will be.
func (f *View) centralDrop(t *Task) serving.Time {
	if app := f.app(&t.w); app.Late == serving.ServeLate {
		if t.w.ColdUntil > 0 && len(f.ready[t.w.Stage]) == 0 {
			return t.w.ColdUntil
		}
		return max(giveUpAt(app, t), t.w.ColdUntil)
	}
	return max(latestStart(t, f.soonest(t)), t.w.ColdUntil)
}

// instanceDrop is the latest start of a task in the queue of an instance.
func (f *View) instanceDrop(i *Instance, t *Task) serving.Time {
	if app := f.app(&t.w); app.Late == serving.ServeLate {
		return max(giveUpAt(app, t), t.w.ColdUntil)
	}
	return max(latestStart(t, f.Fastest(i, t)), t.w.ColdUntil)
}

// giveUpAt is the latest start of a task whose app serves late.
func giveUpAt(app *serving.App, t *Task) serving.Time {
	if app.GiveUp <= 0 {
		return serving.Never
	}
	return t.w.Deadline.Add(app.GiveUp)
}

// latestStart is the start with which a task that takes so long meets its LatestEnd. A probe, and a task of which it is
// not known how long it takes, may start until then.
func latestStart(t *Task, takes time.Duration) serving.Time {
	if t.probe || takes == profile.Unknown {
		return t.w.LatestEnd
	}
	return t.w.LatestEnd.Add(-takes)
}

// soonest is the least time in which a ready instance of its stage is believed to serve t.
func (f *View) soonest(t *Task) time.Duration {
	best := profile.Unknown
	if t.special {
		for _, i := range f.ready[t.w.Stage] {
			best = min(best, f.Fastest(i, t))
		}
		return best
	}
	for _, k := range f.kinds[t.w.Stage] {
		best = min(best, f.profile.Latency(k.variant, k.device, t.Items(), 1))
	}
	return best
}

// Probe lets a task that waits start until its LatestEnd, whatever is believed of how long it takes.
func (f *Fleet) Probe(r Ref) {
	t := &f.tasks[r]
	t.probe, t.dropAt = true, max(t.w.LatestEnd, t.w.ColdUntil)
	f.queue(t).known = false
}
