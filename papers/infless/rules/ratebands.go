package rules

import (
	"cmp"
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/slidingmax"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Constants of RateBands.
const (
	// Alpha sets where in an app's band scaling in begins (INFless §3.2).
	Alpha = 0.8

	bandPause = time.Second // least time between two requests
	// coldPause is the same while an app with waiting queries has no instance. It doubles with each failed plan, up to
	// fallWindow.
	coldPause    = 100 * time.Millisecond
	burstWindow  = time.Second            // over which a burst shows
	jumpWindow   = 200 * time.Millisecond // in which a jump of the rate shows
	steadyWindow = 5 * time.Second        // in which a small excess shows
	// fallWindow is over what time the rate has to be below the band, and how long it has to stay there.
	fallWindow = 10 * time.Second
	// bandHeadRoom is a factor on the rate that keeps a rising load from asking for a plan at every step. The paper
	// plans for the residual alone, R - Rmax (§3.2, case i).
	bandHeadRoom = 1.1
	// noiseSigmas is how many standard deviations of one second's count plans have room for.
	noiseSigmas = 2
	// warmDemand is the least demand, in queries/s, of an app that is kept warm: the lowest rate at which an instance
	// that runs one query at a time counts as used (INFless's artifact).
	warmDemand = 1.0
	// bandFallShare is the part of the planned demand below which a smaller plan is asked for. Where there was no room,
	// 1/bandFallShare is the rise that leads to another request.
	bandFallShare = 0.8
	// oneLess is the part of an instance by which plans for so many of them are smaller, against rounding.
	oneLess = 0.01
)

// RateBands asks for a plan when the rate of an app leaves the band in which its instances work well (INFless §3.2).
//
//   - Scaling out: at once, when the rate exceeds Rmax by more than chance over one second or over five. Rmax is
//     the sum of what the instances carry at most.
//   - Scaling in: when the rate over ten seconds is below alpha Rmax + (1-alpha) Rmin, and instances have lingered.
//     Rmin is the sum of the rates with which their batches fill. This is the band of Eq. 7 and of the authors'
//     release. §3.2 prints the two bounds the other way round; with alpha = 0.8, instances with a low Rmin would
//     then stay down to a fifth of what they carry.
//
// Instances that are starting count as ready. Only arrivals count as load, not the queue that builds up during a start.
// A smaller plan is asked for once the demand is below bandFallShare of the planned one. Where a plan had no room for
// more, the next larger one is asked for when the demand has risen as much, or after ten seconds.
//
// An idle app is kept warm as its KeepAlive says (§3.5): its demand is warmDemand within the KeepAlive's spans, and 0
// outside, which lets its last instance go. A query for an app without instances leads to a request at once. While
// plans have no room for the app, further requests come ever more seldom. An app that was never called is not idle: its
// instances from the start are kept, and without any its first call starts one.
type RateBands struct {
	Alpha float64       // 0 means Alpha
	Pause time.Duration // between two requests; 0 means 1 s
	// Linger is how long instances stay after the load has fallen: plans are made for the highest load of that time. 0
	// means 10 s.
	Linger time.Duration
	// OneToOne gives each query in the system an instance of its own, as platforms for functions do (§2.2): the demand
	// is what keeps as many instances as there were queries at once within Linger.
	OneToOne bool
	// KeepAlive makes the rule that keeps an app warm; nil means LSTH.
	KeepAlive func() KeepAlive

	apps []appBand
	plan *plan.Plan // in force at the last request
}

// appBand is the state of one app.
type appBand struct {
	keepAlive  KeepAlive
	leadTime   time.Duration  // believed time of a start; negative before it is known
	spans      []Span         // of the idle time that began at since
	since      serving.Time   // Never before the first
	below      serving.Time   // since when the rate has been below the band; Never while it is not
	lastDemand float64        // the demand given with the last request; negative before there was one
	most       slidingmax.Max // of the rate over five seconds, or of the queries at once
	called     bool           // in this run, or in a recalled one
	calls      int            // calls that ended an idle time
	failures   int            // consecutive requests after which it has no instance
}

// NewRateBands returns the rule. Every engine needs its own.
func NewRateBands(keepAlive func() KeepAlive) *RateBands { return &RateBands{KeepAlive: keepAlive} }

// Name implements scale.Scaler.
func (*RateBands) Name() string { return "ratebands" }

// Needs implements scale.Scaler.
func (*RateBands) Needs() plan.Sections { return plan.Bands }

// Traits implements scale.Scaler.
func (o *RateBands) Traits() scale.Traits { return scale.Traits{Waker: o, Recaller: o} }

// Invoked implements scale.Waker. It asks for Decide where an earlier answer of Decide may have let the app sleep.
func (o *RateBands) Invoked(now serving.Time, app serving.AppID, idle time.Duration) bool {
	b := o.app(app)
	if b.called { // an idle time lies between two calls
		b.keepAlive.Idled(now, idle)
	}
	b.called = true
	b.calls++
	return idle > scale.Poll
}

func (o *RateBands) app(a serving.AppID) *appBand {
	for len(o.apps) <= int(a) {
		o.apps = append(o.apps, o.newBand())
	}
	return &o.apps[a]
}

func (o *RateBands) newBand() appBand {
	return appBand{keepAlive: o.fresh(), since: serving.Never, below: serving.Never, leadTime: -1, lastDemand: -1}
}

// Forget implements engine.Forgetter.
func (o *RateBands) Forget(_ serving.Time, f *serving.Fresh) {
	for _, a := range f.Apps {
		if int(a) < len(o.apps) {
			o.apps[a] = o.newBand()
		}
	}
}

func (o *RateBands) fresh() KeepAlive {
	if o.KeepAlive != nil {
		return o.KeepAlive()
	}
	return NewLSTH()
}

// Decide implements scale.Scaler.
func (o *RateBands) Decide(v *scale.View) (bool, serving.Time) {
	pause := cmp.Or(o.Pause, bandPause)
	from := v.LastRequest.Add(pause)
	if v.LastRequest == 0 {
		from = 0
	}
	may := !v.Requested && v.Now >= from
	answered := v.Plan != o.plan // the plan in force is younger than the last request
	ask := may && (v.Plan == nil || v.Changed() > v.LastRequest)
	wake := serving.Never
	if v.Changed() > v.LastRequest && v.Now < from {
		wake = from
	}
	next := v.Now.Add(scale.Poll)
	for a := range v.Spec.Apps {
		app := serving.AppID(a)
		b := o.app(app)
		low, up, none := o.bounds(v, app)
		need, until := o.need(v, app, b, none)
		wants, look := false, next
		if none || need == 0 {
			b.below = serving.Never
		}
		switch {
		case need > 0 && none:
			// The app has no instance, present or coming. A planner that has just failed gets the longer pause.
			wait := pause
			if answered || b.lastDemand <= 0 {
				wait = min(pause, coldPause)
			}
			wait = min(wait<<min(b.failures, 10), max(wait, fallWindow))
			wants = !v.Requested && (v.LastRequest == 0 || v.Now >= v.LastRequest.Add(wait))
		case need == 0 && none:
			look = serving.Never
		case need == 0:
			if answered && b.lastDemand == 0 {
				look = serving.Never // the planner keeps an instance all the same
			} else {
				wants = may
			}
		default:
			wants = o.leftBand(v, app, b, answered, need, low, up) && may
			if v.Idle[a] != serving.Never && b.below == serving.Never && v.Monitor.Rate(v.Now, app, fallWindow) == 0 {
				look = serving.Never
			}
		}
		ask = ask || wants
		wake = min(wake, look, until)
	}
	return ask, wake
}

// need returns the demand of an app in queries/s and until when that holds if nothing happens. It is 0 when the app's
// last instance may go, or when the app has none and was never called. An app with MinInstances always needs one.
func (o *RateBands) need(v *scale.View, app serving.AppID, b *appBand, none bool) (rate float64, until serving.Time) {
	if v.Spec.Apps[app].Closed {
		return 0, serving.Never
	}
	since := v.Idle[app]
	demand := o.demand(v, app, b)
	if since == serving.Never || v.Spec.Apps[app].MinInstances > 0 {
		return max(demand, warmDemand), serving.Never
	}
	if none && !b.called {
		return 0, serving.Never
	}
	if since != b.since {
		b.since = since
		b.spans = append(b.spans[:0], b.keepAlive.Warm(since)...)
	}
	for _, s := range b.spans {
		from, to := since.Add(s.From), since.Add(s.To)
		if s.From > 0 {
			from = max(from.Add(-o.leadTime(v, app, b)), since)
		}
		if v.Now < from {
			return 0, from
		}
		if v.Now < to {
			return max(demand, warmDemand), to
		}
	}
	return 0, serving.Never
}

// leadTime is how long before an expected call a start has to begin: the believed load time of the fastest variant at
// the slowest stage.
func (o *RateBands) leadTime(v *scale.View, app serving.AppID, b *appBand) time.Duration {
	if b.leadTime >= 0 {
		return b.leadTime
	}
	b.leadTime = 0
	for _, s := range v.Spec.Apps[app].Stages {
		fastest := time.Duration(math.MaxInt64)
		for _, x := range v.Spec.Stages[s].Variants {
			for d := range v.Spec.DeviceTypes {
				fastest = min(fastest, v.Fleet.LoadTime(x, serving.DeviceTypeID(d)))
			}
		}
		b.leadTime = max(b.leadTime, fastest)
	}
	return b.leadTime
}

// demand is what a plan for an app is made for, in queries/s: the highest mean of steadyWindow within Linger, or the
// rate of the last burstWindow or jumpWindow where that is clearly higher; plus head-room of a tenth and noiseSigmas
// deviations of a second's count. A plan for the mean alone would run its instances at their upper bounds, where
// batches wait for each other.
func (o *RateBands) demand(v *scale.View, app serving.AppID, b *appBand) float64 {
	if o.OneToOne {
		return o.forEach(v, app, b)
	}
	rate := max(v.RateAbove(app, burstWindow, 1), v.RateAbove(app, jumpWindow, 2))
	if v.Now > serving.Time(burstWindow) {
		mean := v.Monitor.Rate(v.Now, app, steadyWindow)
		rate = max(rate, b.most.Highest(int64(v.Now), int64(cmp.Or(o.Linger, fallWindow)), mean))
	}
	return bandHeadRoom*rate + noiseSigmas*math.Sqrt(rate*burstWindow.Seconds())/burstWindow.Seconds()
}

// forEach is the rate, in queries/s, that keeps as many instances as there were queries of the app at once.
func (o *RateBands) forEach(v *scale.View, app serving.AppID, b *appBand) float64 {
	n := float64(v.Waiting[app])
	each := math.Inf(1) // the rate of an instance
	for _, i := range v.Fleet.Live() {
		if v.Spec.Stages[i.Stage()].App != app || i.State() == fleet.Draining {
			continue
		}
		n += float64(i.Outstanding())
		if _, up := i.Band(); up > 0 {
			each = min(each, up)
		}
	}
	n = b.most.Highest(int64(v.Now), int64(cmp.Or(o.Linger, fallWindow)), n)
	if math.IsInf(each, 1) {
		return 0 // the first instance tells it
	}
	return max(n-oneLess, 0) * each
}

// bounds returns Rmin and Rmax of the app's stage with the least Rmax, in queries/s. none reports whether some stage
// has no instance, present or coming.
func (o *RateBands) bounds(v *scale.View, app serving.AppID) (low, up float64, none bool) {
	up = math.Inf(1)
	for _, s := range v.Spec.Apps[app].Stages {
		l, u, n := 0.0, 0.0, 0
		for _, i := range v.Fleet.Live() {
			if i.Stage() == s && i.State() != fleet.Draining {
				a, b := i.Band()
				l, u, n = l+a, u+b, n+1
			}
		}
		if none = none || n == 0; u < up {
			low, up = l, u
		}
	}
	return low, up, none
}

// leftBand reports whether an app's rate has left its band so that a plan is to be asked for. low and up are the bounds
// of the band.
func (o *RateBands) leftBand(v *scale.View, app serving.AppID, b *appBand, answered bool, need, low, up float64) bool {
	answered = answered && b.lastDemand >= 0
	if o.OneToOne && need > up || !o.OneToOne && v.RateExceeds(app, up) {
		b.below = serving.Never
		short := answered && up < b.lastDemand && need < b.lastDemand/bandFallShare // the fleet has no room for more
		return !short || v.Now.Sub(v.LastRequest) >= fallWindow
	}
	alpha := cmp.Or(o.Alpha, Alpha)
	rate := max(v.Monitor.Rate(v.Now, app, fallWindow), v.Monitor.Rate(v.Now, app, burstWindow))
	if !o.OneToOne && rate >= alpha*up+(1-alpha)*low || answered && need > bandFallShare*b.lastDemand {
		b.below = serving.Never
		return false
	}
	if b.below == serving.Never {
		b.below = v.Now
	}
	return v.Now.Sub(b.below) >= bandPause
}

// Demand implements scale.Scaler.
func (o *RateBands) Demand(v *scale.View, rates []float64) {
	o.plan = v.Plan
	for a := range rates {
		app := serving.AppID(a)
		b := o.app(app)
		_, _, none := o.bounds(v, app)
		rates[a], _ = o.need(v, app, b, none)
		if none && b.lastDemand > 0 && rates[a] > 0 {
			b.failures++
		} else {
			b.failures = 0
		}
		b.lastDemand = rates[a]
	}
}
