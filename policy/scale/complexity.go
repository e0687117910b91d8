package scale

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

const (
	complexityPause = time.Second
	complexityLook  = 100 * time.Millisecond
	// receding is how long the demand has to stay below what the plan in force was asked for.
	receding = 10 * time.Second
	// receded is the part of that demand below which a smaller plan is asked for.
	receded = 0.8
	// unanswered is the pause after a request that led to no plan, or to one after which as much waits as before:
	// instances may just be starting.
	unanswered = 5 * time.Second
)

// Complexity asks for a plan when the content of queries changes (Scrooge §3.5): when the items that an edge sends for
// each item served, or the time that a stage's batches take, differs from what the plan in force was made with, by more
// than chance and by the part Change (monitor.Factors). It also asks when a client joins or leaves (§3.4), which shows
// in what is declared of streams (View.BasisChanged) and, of clients that declare nothing, in the rate: at once when
// that exceeds what the plan was made for by more than chance, and after a while when more waits than can be served in
// time; and when it has been a fifth lower for ten seconds. And it asks when a worker is lost or back, and when
// anything else that plans are made from has changed. It never asks within Pause of the last request, or five seconds
// of one that no plan came of. It inflates nothing: the factors go out with the request, and the demand is what is
// seen.
type Complexity struct {
	Pause  time.Duration // 0 means one second
	Change float64       // 0 means monitor.LeastChange

	plan *plan.Plan // in force at the last request
	apps []received
}

// received is what is remembered of an app.
type received struct {
	asked float64 // the demand given with the last request; negative before there was one
	means peaks   // of the rate over five seconds
}

// NewComplexity returns the rule. Every engine needs its own.
func NewComplexity(pause time.Duration, change float64) *Complexity {
	return &Complexity{Pause: pause, Change: change}
}

// Name implements Scaler.
func (*Complexity) Name() string { return "complexity" }

// Needs implements Scaler.
func (*Complexity) Needs() plan.Sections { return 0 }

// Traits implements Scaler.
func (*Complexity) Traits() Traits { return Traits{Follows: true} }

// Decide implements Scaler.
func (c *Complexity) Decide(v *View) (bool, serving.Time) {
	again := v.Now.Add(complexityLook)
	falls := c.falls(v)
	pause := or(c.Pause, complexityPause)
	if v.LastRequest > 0 && v.Plan == c.plan && v.BasisChanged <= v.LastRequest {
		pause = max(pause, unanswered)
	}
	if v.Requested || v.Plan != nil && v.Now < v.LastRequest.Add(pause) {
		return false, again
	}
	if v.Plan == nil || v.BasisChanged > v.LastRequest || falls || c.rises(v) || v.piled() &&
		v.Now.Sub(v.LastRequest) >= unanswered {
		return true, again
	}
	return v.Factors != nil && v.Factors.Changed(v.Now, v.Plan.FanOuts, v.Plan.Ballooning, c.Change), again
}

func (c *Complexity) app(a serving.AppID) *received {
	for len(c.apps) <= int(a) {
		c.apps = append(c.apps, received{asked: -1})
	}
	return &c.apps[a]
}

// rate is the demand of an app: what its clients declare; or, where they declare nothing or far more comes, the highest
// mean of five seconds of late, or the rate of the last second or fifth of one where that is clearly above.
func (c *Complexity) rate(v *View, app serving.AppID) float64 {
	if d := v.Monitor.Declared(app); d > 0 {
		// In the second after a client has left, what it sent still counts as seen.
		if v.Now.Sub(v.BasisChanged) < burst || !v.bursts(app, d) || receded*v.Monitor.Rate(v.Now, app, steady) < d {
			return d
		}
	}
	x := max(v.above(app, burst, 1), v.above(app, glance, 2))
	if v.Now > serving.Time(burst) {
		x = max(x, c.app(app).means.highest(v.Now, receding, v.Monitor.Rate(v.Now, app, steady)))
	}
	return max(x, least)
}

// rises tells whether more of an app comes, by more than chance, than the plan in force carries and was made for, so
// that a plan would be asked for more. A plan that does not say is one for what was asked.
func (c *Complexity) rises(v *View) bool {
	for a := range v.Spec.Apps {
		app := serving.AppID(a)
		_, planned := v.promised(app)
		if planned == 0 {
			planned = max(c.app(app).asked, 0)
		}
		if v.bursts(app, planned) && c.rate(v, app) > planned {
			return true
		}
	}
	return false
}

// falls takes note of the rates and tells whether an app asks for less, by more than chance, than the plan in force was
// made for, and is not on its way to asking for even less.
func (c *Complexity) falls(v *View) bool {
	found := false
	for a := range v.Spec.Apps {
		app := serving.AppID(a)
		asked, rate, mean := c.app(app).asked, c.rate(v, app), v.Monitor.Rate(v.Now, app, steady)
		if asked < 0 && mean > 0 && v.Plan != nil && a < len(v.Plan.Demand) {
			asked = v.Plan.Demand[a] // the first plan was made for what was expected
		}
		falling := above(rate, mean)
		found = found || rate < receded*asked && above(asked, rate) && !falling
	}
	return found && v.Plan != c.plan && v.Now.Sub(v.LastRequest) >= receding
}

// above tells whether a rate is above the mean of five seconds by more than chance.
func above(rate, mean float64) bool { return rate-mean > 2*math.Sqrt(rate/steady.Seconds()) }

// Demand implements Scaler.
func (c *Complexity) Demand(v *View, rates []float64) {
	c.plan = v.Plan
	for a := range rates {
		rates[a] = c.rate(v, serving.AppID(a))
		c.app(serving.AppID(a)).asked = rates[a]
	}
}
