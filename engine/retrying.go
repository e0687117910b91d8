package engine

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// expected is when a query of an app that is refused now may expect a place: when what waits at its first stage has
// been served at the rate that its ready instances are believed to have, or has been given up. It is 0 where nothing
// tells.
func (a *admission) expected(app *serving.App, why Reason) time.Duration {
	s := app.Stages[0]
	if why != QueueFull {
		return a.startsIn(s)
	}
	rate := 0.0 // items/s
	for _, i := range a.fleet.Ready(s) {
		best := 0.0
		for k := range i.Variants() {
			l := i.Variant(k)
			if !l.Usable() || l.Limit < 1 {
				continue
			}
			takes := a.fleet.Beliefs().Latency(l.Variant, i.DeviceType(), l.Limit, 1)
			if takes > 0 && takes < profile.Unknown {
				best = max(best, float64(l.Limit)/takes.Seconds())
			}
		}
		rate += best
	}
	if rate <= 0 {
		return 0
	}
	items := a.fleet.Central(s).Items() + a.fleet.AwaitingTurn(s).Items()
	for _, i := range a.fleet.Ready(s) {
		items += i.Queue().Items()
	}
	expected := time.Duration(float64(items) / rate * float64(time.Second))
	if app.Late == serving.DropLate {
		expected = min(expected, app.SLO.Latency)
	}
	return expected
}

// startsIn is how long the first instance of a stage that is being launched is believed to take yet.
func (a *admission) startsIn(s serving.StageID) time.Duration {
	first := profile.Unknown
	for _, i := range a.fleet.Live() {
		if i.Stage() != s {
			continue
		}
		for k := range i.Variants() {
			if l := i.Variant(k); l.Wanted && !l.Warm {
				load := a.fleet.Beliefs().Load(l.Variant, i.DeviceType())
				first = min(first, max(load-a.now.Sub(i.Launched()), 0))
			}
		}
	}
	if first >= profile.Unknown {
		return 0
	}
	return first
}
