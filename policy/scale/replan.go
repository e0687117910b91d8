package scale

import (
	"cmp"
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Defaults of Replan.
const (
	// Interval between periodic plans (Proteus §6.1.5).
	Interval = 30 * time.Second
	// Com is the centre of mass, in seconds, of the demand's exponential mean (Proteus's artifact).
	Com = 1.6
	// Pause is the least time between a plan and a request because of a burst. With less, the effect of the last plan
	// does not show yet.
	Pause = time.Second

	Poll         = 100 * time.Millisecond // how often rules look at rates
	burstWindow  = time.Second            // over which a burst shows
	steadyWindow = 5 * time.Second        // over which a small excess shows
	burstSigmas  = 3                      // standard deviations of a Poisson count that are not yet a burst
	MinDemand    = 0.1                    // queries/s: an app without calls keeps an instance for its first one
)

// Replan asks for a plan periodically. With Bursts it also asks as soon as the demand exceeds what the plan in force
// was made for, or more waits than that plan can serve within the objective (Proteus §3 "Load Balancer", §4). It also
// asks when a worker was lost or came back. Its demand is the exponential mean of the last seconds, or the last
// second's rate where that is clearly higher, because the mean lags behind a steep rise.
type Replan struct {
	Interval time.Duration // 0 means Interval
	Bursts   bool
	Pause    time.Duration // 0 means Pause
	Com      float64       // 0 means Com
	Plain    bool          // the exponential mean alone, as in Proteus
}

// Name implements Scaler.
func (r Replan) Name() string {
	if r.Bursts {
		return "replan"
	}
	return "periodic"
}

// Needs implements Scaler.
func (r Replan) Needs() plan.Sections { return 0 }

// Traits implements Scaler.
func (Replan) Traits() Traits { return Traits{} }

// Decide implements Scaler.
func (r Replan) Decide(v *View) (bool, serving.Time) {
	interval, pause := cmp.Or(r.Interval, Interval), cmp.Or(r.Pause, Pause)
	due := v.LastRequest.Add(interval)
	due = min(due, v.BasisDue())
	wake := max(due, v.Now+1)
	if r.Bursts {
		from := v.LastRequest.Add(pause)
		if v.Now >= from && v.Now < due && Overloaded(v) {
			due = v.Now
		}
		wake = min(wake, max(from, v.Now.Add(Poll)))
	}
	if v.Requested {
		return false, max(wake, v.Now.Add(Poll)) // the plan that comes leads to another call
	}
	if v.Now >= due {
		return true, v.Now.Add(min(pause, interval))
	}
	return false, wake
}

// Overloaded reports whether some app has a demand beyond what the plan in force carries and was made for, by more than
// chance, or has more queries waiting than could be served within its objective. It is true before the first plan.
func Overloaded(v *View) bool {
	return v.Plan == nil || v.demandExceeded() || v.Backlogged()
}

// Planned returns the capacity that the plan in force has for an app, and the larger of that and the demand it was made
// for, in queries/s.
func (v *View) Planned(app serving.AppID) (capacity, asked float64) {
	a := int(app)
	if a < len(v.Plan.Capacity) {
		capacity = v.Plan.Capacity[a]
	}
	if asked = capacity; a < len(v.Plan.Demand) {
		asked = max(capacity, v.Plan.Demand[a])
	}
	return capacity, asked
}

// demandExceeded reports whether the rate of some app is beyond what the plan in force carries and was made for, by
// more than chance.
func (v *View) demandExceeded() bool {
	for a := range v.Spec.Apps {
		_, asked := v.Planned(serving.AppID(a))
		if v.BurstAbove(serving.AppID(a), asked) {
			return true
		}
	}
	return false
}

// BurstAbove reports whether the rate of an app over the last second exceeds another rate by more than chance.
func (v *View) BurstAbove(app serving.AppID, than float64) bool {
	n := than * burstWindow.Seconds()
	return v.Monitor.Rate(v.Now, app, burstWindow)*burstWindow.Seconds() > n+burstSigmas*math.Sqrt(n)+1
}

// Backlogged reports whether more queries of some app wait than the plan in force could serve within its objective.
// Apps that the plan sheds do not count: their excess waits until it is dropped.
func (v *View) Backlogged() bool {
	for a := range v.Spec.Apps {
		capacity, _ := v.Planned(serving.AppID(a))
		stages := float64(max(len(v.Spec.Apps[a].Stages), 1)) // queries may wait at each
		shed := a < len(v.Plan.Shed) && v.Plan.Shed[a] > 0
		if !shed && float64(v.Waiting[a]) > max(capacity*v.Spec.Apps[a].SLO.Latency.Seconds(), 8)*stages {
			return true
		}
	}
	return false
}

// Demand implements Scaler.
func (r Replan) Demand(v *View, rates []float64) {
	com := r.Com
	if com <= 0 {
		com = Com
	}
	for a := range rates {
		app := serving.AppID(a)
		rates[a] = max(v.Monitor.EWMA(v.Now, app, com), MinDemand)
		if r.Plain {
			continue
		}
		// One standard deviation of the count is subtracted: a random excess is no demand.
		n := v.Monitor.Rate(v.Now, app, burstWindow) * burstWindow.Seconds()
		rates[a] = max(rates[a], (n-math.Sqrt(n))/burstWindow.Seconds())
	}
}
