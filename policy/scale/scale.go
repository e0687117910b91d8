// Package scale decides when to ask for a new plan and for what demand. One file, one rule. What to run is the
// planner's business.
package scale

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// Scaler decides when to plan anew. The engine calls Decide at the time the last answer asked for, and after a change
// of the instances.
//
// A rule that wraps another one embeds it, or answers every method itself: nothing is asked for beside the port.
type Scaler interface {
	// Name is the rule's registry name.
	Name() string
	// Needs lists the sections of the plan the rule reads.
	Needs() plan.Sections
	// Decide answers whether to request a plan now and when to ask again (serving.Never: only after a change).
	Decide(v *View) (replan bool, again serving.Time)
	// Demand fills in the rates, by AppID in queries/s, that a plan requested now is to be made for. The engine raises
	// them to what the clients of open streams have declared.
	Demand(v *View, rates []float64)
	// Traits says what else the rule can do. The engine asks once.
	Traits() Traits
}

// Traits is what a Scaler can do beyond its port; the zero value is nothing.
type Traits struct {
	// Waker is not nil for a rule that lets apps go which nobody calls, and starts them again. The engine lets the
	// queries of an app that has no instance wait for it, for as long as the app's late policy and cold wait allow, and
	// calls Decide whenever one finds nothing ready.
	Waker Waker
	// Recaller is not nil for a rule that learns of every app what may outlive a run.
	Recaller Recaller
	// Follows tells that the rule follows the content of queries (Scrooge §3.5). The engine then counts factors, shows
	// them in View.Factors, asks for every plan with those observed, and gives queries up by what batches were seen to
	// take then.
	Follows bool
}

// Waker is told when idle apps are called.
type Waker interface {
	// Invoked tells that an app is called at now after it had nothing to do for idle. It answers whether Decide is to
	// be called in this step.
	Invoked(now serving.Time, app serving.AppID, idle time.Duration) bool
}

// View is what a rule may see.
type View struct {
	Now     serving.Time
	Spec    *serving.Spec
	Fleet   *fleet.View
	Monitor *monitor.View
	Plan    *plan.Plan // in force, not to be changed; nil before the first
	// Requested tells that a request is under way. LastRequest is when the last one was made; 0 before the first.
	Requested   bool
	LastRequest serving.Time
	// BasisChanged is when something that plans are made from last changed: a worker or a variant was found unfit for
	// planning, or fit again; a price changed; other latencies are believed; a client that declares its rate joined or
	// left. 0 for never.
	BasisChanged serving.Time
	Waiting      []int // by AppID: queries that wait
	// Idle is, by AppID, since when an app has had nothing to do; serving.Never for one that has.
	Idle []serving.Time
	// Factors is what content makes of the apps' graphs, for a rule that Follows; nil for others.
	Factors *monitor.FactorView
}

// above is the arrival rate of an app over a time, less so many deviations of what chance brings.
func (v *View) above(app serving.AppID, window time.Duration, deviations float64) float64 {
	s := min(window, max(time.Duration(v.Now), 1)).Seconds()
	n := v.Monitor.Rate(v.Now, app, window) * s
	return max(n-deviations*math.Sqrt(n), 0) / s
}

// over tells whether an app's rate exceeds another, such as what its instances carry, by more than chance, over a
// second or over five.
func (v *View) over(app serving.AppID, up float64) bool {
	for _, o := range [...]struct {
		window time.Duration
		sigmas float64
	}{{burst, sigma}, {steady, 1}} {
		window := min(o.window, time.Duration(v.Now))
		n := up * window.Seconds()
		if v.Monitor.Rate(v.Now, app, window)*window.Seconds() > n+o.sigmas*math.Sqrt(n)+1 {
			return true
		}
	}
	return false
}
