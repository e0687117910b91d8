package fleet

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// centralDrop is the latest start of a task that waits at its stage: the one with which the fastest ready instance
// meets LatestEnd, or LatestEnd itself without such an instance. A task that waits for a cold start may start until
// ColdUntil, and no later while nothing is ready, because a start may never succeed.
func (f *View) centralDrop(t *Task) serving.Time { return t.startBy(f.lateAt(t)) }

// startBy is the earliest of a latest start and those that the rules of the task's queue and its client allow.
func (t *Task) startBy(late serving.Time) serving.Time {
	if t.w.StartBy > 0 {
		late = min(late, t.w.StartBy)
	}
	if t.w.Expires > 0 {
		late = min(late, t.w.Expires)
	}
	return late
}

// timed reports whether tasks do not expire in their order because of t.
func (t *Task) timed() bool { return t.w.OwnTimeout || t.w.Expires > 0 || t.w.Own }

func (f *View) lateAt(t *Task) serving.Time {
	if app := f.app(&t.w); app.ServesLate(t.w.Own) {
		if t.w.ColdUntil > 0 && len(f.ready[t.w.Stage]) == 0 {
			return t.w.ColdUntil
		}
		return max(giveUpAt(app, t), t.w.ColdUntil)
	}
	return max(latestStart(t, f.fastestReady(t)), t.w.ColdUntil)
}

// instanceDrop is the latest start of a task in the queue of an instance.
func (f *View) instanceDrop(i *Instance, t *Task) serving.Time { return t.startBy(f.lateOn(i, t)) }

func (f *View) lateOn(i *Instance, t *Task) serving.Time {
	if app := f.app(&t.w); app.ServesLate(t.w.Own) {
		return max(giveUpAt(app, t), t.w.ColdUntil)
	}
	return max(f.LatestStart(i, t), t.w.ColdUntil)
}

// LatestStart is the latest start of t on i with which t meets its LatestEnd, as far as is known.
func (f *View) LatestStart(i *Instance, t *Task) serving.Time { return latestStart(t, f.Fastest(i, t)) }

// Beliefs returns the latencies that are believed now.
func (f *View) Beliefs() profile.Profile { return f.profile }

// giveUpAt is the latest start of a task whose app serves late.
func giveUpAt(app *serving.App, t *Task) serving.Time {
	if app.GiveUp <= 0 {
		return serving.Never
	}
	return t.w.Deadline.Add(app.GiveUp)
}

// latestStart is the start with which a task of a given run time meets its LatestEnd. A probe, and a task of unknown
// run time, may start until LatestEnd.
func latestStart(t *Task, takes time.Duration) serving.Time {
	if t.probe || takes == profile.Unknown {
		return t.w.LatestEnd
	}
	return t.w.LatestEnd.Add(-takes)
}

// fastestReady is the least believed time in which a ready instance of its stage serves t. It is 0 for a task with an
// answer: the router says when no time is left for a better one.
func (f *View) fastestReady(t *Task) time.Duration {
	if t.w.Hint > 0 {
		return 0
	}
	best := profile.Unknown
	if t.constrained {
		for _, i := range f.ready[t.w.Stage] {
			best = min(best, f.Fastest(i, t))
		}
		return best
	}
	for _, k := range f.kinds[t.w.Stage] {
		best = min(best, f.alone(k.variant, k.device, &t.w, 1))
	}
	return best
}

// Probe lets a waiting task start until its LatestEnd, whatever its believed run time.
func (f *Fleet) Probe(r Ref) {
	t := &f.tasks[r]
	t.probe, t.dropAt = true, t.startBy(max(t.w.LatestEnd, t.w.ColdUntil))
	f.queue(t).known = false
}
