// Package scale decides when to ask for a new plan and for what demand. Planners decide what runs. One file, one rule.
package scale

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// Scaler decides when to ask for a plan. The engine calls Decide at the time that the last answer asked for, and after
// a change of the instances.
//
// A rule that wraps another one embeds it, or implements every method: the engine asks for nothing beside this
// interface.
type Scaler interface {
	// Name is the rule's registry name.
	Name() string
	// Needs lists the sections of the plan the rule reads.
	Needs() plan.Sections
	// Decide returns whether to request a plan now, and when to call again (serving.Never: only after a change). It
	// must not keep v.
	Decide(v *View) (replan bool, wake serving.Time)
	// Demand fills in the rates, by AppID in queries/s, that a plan requested now is made for. The engine raises them
	// to the rates that clients of open streams have declared.
	Demand(v *View, rates []float64)
	// Traits returns what else the rule can do. The engine calls it once.
	Traits() Traits
}

// Traits are the optional abilities of a Scaler. The zero value has none.
type Traits struct {
	// Waker is not nil for a rule that lets idle apps go to zero instances and starts them again. Queries of an app
	// without an instance then wait, for as long as the app's late policy and cold wait allow. The engine calls Decide
	// whenever one finds nothing ready.
	Waker Waker
	// Recaller is not nil for a rule whose learned state may outlive a run.
	Recaller Recaller
	// Judge is not nil for a rule that judges the pools of machines that serve.
	Judge Judge
	// Follows is set for a rule that follows the content of queries (Scrooge §3.5). The engine then counts factors,
	// shows them in View.Factors, requests every plan with the factors observed, and uses them when it decides which
	// queries to give up.
	Follows bool
	// Least is the demand in queries/s that the rule asks for at least, of each app, called or not. The first plan,
	// which is made before the rule is asked, is for at least as much.
	Least float64
}

// Waker is called when an idle app is called.
type Waker interface {
	// Invoked records that an app is called at now after an idle time of idle. It reports whether Decide is to be
	// called in this step.
	Invoked(now serving.Time, app serving.AppID, idle time.Duration) bool
}

// Judge tells what serving has shown of pools of machines.
type Judge interface {
	// Experience is called when a plan is requested. The rule must not change what it returns any more.
	Experience() *plan.Experience
}

// Recaller is a Scaler whose learned idle times outlive a run.
type Recaller interface {
	// Learned counts what was learned of an app in this run. Remember returns something new only after it has changed.
	Learned(app serving.AppID) int
	// Remember returns a record of what is known of an app at now; nil for nothing. The slice is the caller's.
	Remember(app serving.AppID, now serving.Time) []byte
	// Recall reads what Remember of an earlier run wrote, older before now. On an error the app's rule starts from
	// nothing. It does not keep b.
	Recall(app serving.AppID, b []byte, now serving.Time, older time.Duration) error
}

// View is what a rule may read. Rules must not change what it points to, and must not keep it.
type View struct {
	Now     serving.Time
	Spec    *serving.Spec
	Fleet   *fleet.View
	Monitor *monitor.View
	Plan    *plan.Plan // in force, not to be changed; nil before the first
	// Requested is set while a request is under way. LastRequest is when the last one was made; 0 before the first.
	Requested   bool
	LastRequest serving.Time
	// BasisChanged is when an input of planning last changed: a worker or a variant became unusable or usable, a price
	// changed, or the believed latencies changed. Declared is when a client that declares its rate last joined or left.
	// 0 for never.
	BasisChanged, Declared serving.Time
	Waiting                []int // by AppID: number of waiting queries
	// Idle is, by AppID, since when an app has been idle; serving.Never for one that is not.
	Idle []serving.Time
	// Start is how long a machine is believed to take that has to be had first, of the slowest device type for which
	// that was seen; 0 where machines are there.
	Start time.Duration
	// Factors are the scaling and ballooning factors seen, for a rule that Follows; nil for others.
	Factors *monitor.FactorView
}

// Changed is when an input of planning last changed, what clients declare included.
func (v *View) Changed() serving.Time { return max(v.BasisChanged, v.Declared) }

// BasisDue is from when on a change of the basis since the last request is a reason to ask; serving.Never where there
// was none. Clients that declare their rates may come and go by thousands: for them no plan is asked for within Pause
// of the last request, so that one is made for all of them.
func (v *View) BasisDue() serving.Time {
	switch {
	case v.BasisChanged > v.LastRequest, v.Declared > v.LastRequest && v.LastRequest == 0:
		return v.Now
	case v.Declared > v.LastRequest:
		return max(v.Now, v.LastRequest.Add(Pause))
	}
	return serving.Never
}

// RateAbove is a lower bound of an app's arrival rate in queries/s: the rate over a window, less so many standard
// deviations of the count.
func (v *View) RateAbove(app serving.AppID, window time.Duration, deviations float64) float64 {
	s := min(window, max(time.Duration(v.Now), 1)).Seconds()
	n := v.Monitor.Rate(v.Now, app, window) * s
	return max(n-deviations*math.Sqrt(n), 0) / s
}

// RateExceeds reports whether an app's rate exceeds up, in queries/s, by more than chance, over one second or over
// five.
func (v *View) RateExceeds(app serving.AppID, up float64) bool {
	for _, o := range [...]struct {
		window time.Duration
		sigmas float64
	}{{burstWindow, burstSigmas}, {steadyWindow, 1}} {
		window := min(o.window, time.Duration(v.Now))
		n := up * window.Seconds()
		if v.Monitor.Rate(v.Now, app, window)*window.Seconds() > n+o.sigmas*math.Sqrt(n)+1 {
			return true
		}
	}
	return false
}
