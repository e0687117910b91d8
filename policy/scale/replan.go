package scale

import (
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
	// Pause is the least time between a plan and a request for the next because of a burst: shorter, and the effect of
	// the last plan has not been seen yet.
	Pause = time.Second

	look  = 100 * time.Millisecond // how often a burst is looked for
	burst = time.Second            // over which one shows
	sigma = 3                      // standard deviations of a Poisson count that are not yet a burst
	least = 0.1                    // queries/s: an app that nobody calls yet keeps an instance for the first who does
)

// Replan asks for a plan periodically and, with Bursts, as soon as the demand exceeds what the plan in force was made
// for, or more waits than it can serve within the objective (Proteus §3 "Load Balancer", §4: the Resource Manager is
// invoked periodically, and by the monitoring daemon when the demand changes rapidly). It also asks when a worker was
// lost or came back. Its demand is the exponential mean of the last seconds, or the last second's rate when that is
// clearly above: the mean of a steep rise is what was needed a moment ago.
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
	interval, pause := or(r.Interval, Interval), or(r.Pause, Pause)
	due := v.LastRequest.Add(interval)
	if v.BasisChanged > v.LastRequest {
		due = v.Now
	}
	again := max(due, v.Now+1)
	if r.Bursts {
		from := v.LastRequest.Add(pause)
		if v.Now >= from && v.Now < due && Overloaded(v) {
			due = v.Now
		}
		again = min(again, max(from, v.Now.Add(look)))
	}
	if v.Requested {
		return false, max(again, v.Now.Add(look)) // the answer comes as a plan; then this is asked again
	}
	if v.Now >= due {
		return true, v.Now.Add(min(pause, interval))
	}
	return false, again
}

func or(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

// Overloaded tells whether some app sees a demand beyond what the plan in force carries and was made for, chance left
// aside, or has more waiting than could be served within its objective.
func Overloaded(v *View) bool {
	return v.Plan == nil || v.exceeds() || v.piled()
}

// promised is what the plan in force carries of an app, and what that or its demand is, in queries/s.
func (v *View) promised(app serving.AppID) (able, asked float64) {
	a := int(app)
	if a < len(v.Plan.Capacity) {
		able = v.Plan.Capacity[a]
	}
	if asked = able; a < len(v.Plan.Demand) {
		asked = max(able, v.Plan.Demand[a])
	}
	return able, asked
}

// exceeds tells whether the rate of some app is beyond what the plan in force carries and was made for, by more than
// chance.
func (v *View) exceeds() bool {
	for a := range v.Spec.Apps {
		_, asked := v.promised(serving.AppID(a))
		if v.bursts(serving.AppID(a), asked) {
			return true
		}
	}
	return false
}

// bursts tells whether the rate of an app over the last second exceeds another by more than chance.
func (v *View) bursts(app serving.AppID, than float64) bool {
	n := than * burst.Seconds()
	return v.Monitor.Rate(v.Now, app, burst)*burst.Seconds() > n+sigma*math.Sqrt(n)+1
}

// piled tells whether more waits of some app than the plan in force could serve within its objective. What it sheds on
// purpose waits until it is dropped: no news.
func (v *View) piled() bool {
	for a := range v.Spec.Apps {
		able, _ := v.promised(serving.AppID(a))
		stages := float64(max(len(v.Spec.Apps[a].Stages), 1)) // at each of which a query may wait
		shed := a < len(v.Plan.Shed) && v.Plan.Shed[a] > 0
		if !shed && float64(v.Waiting[a]) > max(able*v.Spec.Apps[a].SLO.Latency.Seconds(), 8)*stages {
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
		rates[a] = max(v.Monitor.EWMA(v.Now, app, com), least)
		if r.Plain {
			continue
		}
		// One deviation of the count is taken off: it is there by chance half the time.
		n := v.Monitor.Rate(v.Now, app, burst) * burst.Seconds()
		rates[a] = max(rates[a], (n-math.Sqrt(n))/burst.Seconds())
	}
}
