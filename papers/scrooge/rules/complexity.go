package rules

import (
	"cmp"
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/slidingmax"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
)

const (
	complexityPause = time.Second
	// Windows in which a jump of a rate, a burst and a small excess show.
	jumpWindow, burstWindow, steadyWindow = 200 * time.Millisecond, time.Second, 5 * time.Second
	// fallHold is how long the demand has to stay low before a smaller plan is asked for.
	fallHold = 10 * time.Second
	// fallShare is the part of the plan's demand below which a smaller plan is asked for.
	fallShare = 0.8
	// retryPause is the pause after a request that led to no plan, or to a plan with which as much waits as before.
	// Instances may still be starting.
	retryPause = 5 * time.Second
)

// Complexity asks for a plan when the content of queries changes (Scrooge §3.5) or when clients join or leave (§3.4).
//
//   - Content: a fan-out or a ballooning factor differs from the one that the plan in force was made with, by more
//     than chance and by the part Change (monitor.Factors).
//   - Declared rates: scale.View.Declared shows changes.
//   - Clients that declare nothing: it asks at once when the rate exceeds the planned one by more than chance,
//     after retryPause when more waits than can be served in time, and after fallHold when the rate is below
//     fallShare of the planned one.
//   - Any other input of planning that changed, such as a lost worker.
//
// It never asks within Pause of the last request, or within retryPause of a request that no plan followed. It adds no
// head-room: factors go out with the request, and the demand is the rate that was seen.
type Complexity struct {
	Pause  time.Duration // 0 means 1 s
	Change float64       // 0 means monitor.LeastChange

	plan *plan.Plan // in force at the last request
	apps []appDemand
}

// appDemand is the state of one app.
type appDemand struct {
	lastDemand float64        // the demand given with the last request; negative before there was one
	means      slidingmax.Max // of the rate over five seconds
}

// NewComplexity returns the rule. Every engine needs its own.
func NewComplexity(pause time.Duration, change float64) *Complexity {
	return &Complexity{Pause: pause, Change: change}
}

// Name implements scale.Scaler.
func (*Complexity) Name() string { return "complexity" }

// Forget implements engine.Forgetter.
func (c *Complexity) Forget(_ serving.Time, f *serving.Fresh) {
	serving.Forget(c.apps, f.Apps, appDemand{lastDemand: -1})
}

// Needs implements scale.Scaler.
func (*Complexity) Needs() plan.Sections { return 0 }

// Traits implements scale.Scaler.
func (*Complexity) Traits() scale.Traits { return scale.Traits{Follows: true} }

// Decide implements scale.Scaler.
func (c *Complexity) Decide(v *scale.View) (bool, serving.Time) {
	wake := v.Now.Add(scale.Poll)
	falls := c.falls(v)
	pause := cmp.Or(c.Pause, complexityPause)
	if v.LastRequest > 0 && v.Plan == c.plan && v.Changed() <= v.LastRequest {
		pause = max(pause, retryPause)
	}
	if v.Requested || v.Plan != nil && v.Now < v.LastRequest.Add(pause) {
		return false, wake
	}
	if v.Plan == nil || v.Changed() > v.LastRequest || falls || c.rises(v) || v.Backlogged() &&
		v.Now.Sub(v.LastRequest) >= retryPause {
		return true, wake
	}
	return v.Factors != nil && v.Factors.Changed(v.Now, v.Plan.FanOuts, v.Plan.Ballooning, c.Change), wake
}

func (c *Complexity) app(a serving.AppID) *appDemand {
	for len(c.apps) <= int(a) {
		c.apps = append(c.apps, appDemand{lastDemand: -1})
	}
	return &c.apps[a]
}

// rate is the demand of an app in queries/s: the declared rate, or the rate that was seen where clients declare nothing
// or clearly exceed it. The rate seen is the highest mean of steadyWindow within fallHold, or the rate of the last
// burstWindow or jumpWindow where that is clearly higher.
func (c *Complexity) rate(v *scale.View, app serving.AppID) float64 {
	if d := v.Monitor.Declared(app); d > 0 {
		// Queries of a client that has just left still count as seen for a second.
		left := v.Now.Sub(v.Changed()) < burstWindow
		if left || !v.BurstAbove(app, d) || fallShare*v.Monitor.Rate(v.Now, app, steadyWindow) < d {
			return d
		}
	}
	x := max(v.RateAbove(app, burstWindow, 1), v.RateAbove(app, jumpWindow, 2))
	if v.Now > serving.Time(burstWindow) {
		x = max(x, c.app(app).means.Highest(int64(v.Now), int64(fallHold), v.Monitor.Rate(v.Now, app, steadyWindow)))
	}
	return max(x, scale.MinDemand)
}

// rises reports whether an app needs more than the plan in force carries and was made for, by more than chance. A plan
// that states no capacity counts as one for the last demand.
func (c *Complexity) rises(v *scale.View) bool {
	for a := range v.Spec.Apps {
		app := serving.AppID(a)
		if v.Spec.Apps[a].Closed {
			continue
		}
		_, planned := v.Planned(app)
		if planned == 0 {
			planned = max(c.app(app).lastDemand, 0)
		}
		if v.BurstAbove(app, planned) && c.rate(v, app) > planned {
			return true
		}
	}
	return false
}

// falls records the rates and reports whether an app needs less than the plan in force was made for, by more than
// chance, and its rate is no longer falling.
func (c *Complexity) falls(v *scale.View) bool {
	found := false
	for a := range v.Spec.Apps {
		app := serving.AppID(a)
		if v.Spec.Apps[a].Closed {
			continue
		}
		lastDemand, rate, mean := c.app(app).lastDemand, c.rate(v, app), v.Monitor.Rate(v.Now, app, steadyWindow)
		if lastDemand < 0 && mean > 0 && v.Plan != nil && a < len(v.Plan.Demand) {
			lastDemand = v.Plan.Demand[a] // the first plan was made for what was expected
		}
		falling := aboveNoise(rate, mean)
		found = found || rate < fallShare*lastDemand && aboveNoise(lastDemand, rate) && !falling
	}
	return found && v.Plan != c.plan && v.Now.Sub(v.LastRequest) >= fallHold
}

// aboveNoise reports whether a rate is above a mean over steadyWindow by more than chance.
func aboveNoise(rate, mean float64) bool { return rate-mean > 2*math.Sqrt(rate/steadyWindow.Seconds()) }

// Demand implements scale.Scaler.
func (c *Complexity) Demand(v *scale.View, rates []float64) {
	c.plan = v.Plan
	for a := range rates {
		rates[a] = c.rate(v, serving.AppID(a))
		c.app(serving.AppID(a)).lastDemand = rates[a]
	}
}
