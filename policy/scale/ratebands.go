package scale

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Of RateBands.
const (
	// Alpha says where in an app's band scaling in begins (INFless §3.2).
	Alpha = 0.8

	bandPause = time.Second // between two requests, at least
	// the same when queries wait for an app of which nothing runs; doubled up to calm while plans have no room for it
	coldPause = 100 * time.Millisecond
	bandLook  = 100 * time.Millisecond
	glance    = 200 * time.Millisecond // over which a jump of the rate shows
	steady    = 5 * time.Second        // over which a small excess shows
	// over which the rate has to be below the band, and how long it has to stay there
	calm = 10 * time.Second
	// ahead is how far beyond the rate seen plans reach, so that a rising load does not ask at every step.
	bandAhead = 1.1
	// chance is how many deviations of a second's count plans have room for.
	chance = 2
	// smallest is the demand of an app that is kept warm, or called now and then: the lowest rate at which an instance
	// that runs one query at a time counts as used (INFless's artifact).
	smallest = 1.0
	// shrunk is the part of what the plan in force was made for to which the demand has to fall before a smaller one is
	// asked for; and by one over it it has to rise for a larger one where there was no room.
	shrunk = 0.8
)

// RateBands asks for a plan when the rate of an app leaves the band in which its instances work well (INFless §3.2): at
// once when it exceeds Rmax, the sum of what they carry at most, by more than chance over a second or over five; and
// when over ten seconds it is below alpha Rmax + (1-alpha) Rmin, where Rmin is the sum of what they need for their
// batches to fill, and instances have lingered. That is the band of Eq. 7 and of the authors' release; §3.2 prints the
// two the other way round, and with its alpha of 0.8 instances that need little for their batches would stay down to a
// fifth of what they carry. Instances that are starting count as if they were there, and only arrivals count as load:
// neither the queue that builds up during a start nor batches that wait to fill do. A smaller plan is asked for once
// the demand has fallen by a fifth below what the plan in force was made for, and a larger one, where there was no room
// for that, when it has risen as much or after ten seconds.
//
// An app that has nothing to do is kept warm as its Keeper says (§3.5): with the smallest demand in the Keeper's spans
// of its idle time, and with none, which lets its last instance go, outside. A query for an app of which nothing runs
// is answered with a request at once, and while plans have no room for it with further ones ever more seldom. An app
// that nobody has called yet is not idle: what runs of it from the start is kept as if it were, and where nothing does
// its first call starts it.
type RateBands struct {
	Alpha float64       // 0 means Alpha
	Pause time.Duration // between two requests; 0 means one second
	// Linger is how long instances stay that a fallen load needs no more: plans are made for the highest load of so
	// long a time. 0 means ten seconds.
	Linger time.Duration
	// Keeper makes the rule that keeps an app warm; nil means LSTH.
	Keeper func() Keeper

	apps []banded
	plan *plan.Plan // in force at the last request
}

// banded is what is remembered of an app.
type banded struct {
	keeper Keeper
	lead   time.Duration // that a start is believed to take at least; negative before it is known
	spans  []Span        // of the idle time that began at since
	since  serving.Time  // Never before the first
	below  serving.Time  // since when the rate has been below the band; Never while it is not
	asked  float64       // the demand given with the last request; negative before there was one
	means  peaks         // of the rate over five seconds
	called bool          // in this run, or in one that was recalled
	calls  int           // that ended an idle time
	vain   int           // requests in a row after which nothing runs of it
}

// NewRateBands returns the rule. Every engine needs its own.
func NewRateBands(keeper func() Keeper) *RateBands { return &RateBands{Keeper: keeper} }

// Name implements Scaler.
func (*RateBands) Name() string { return "ratebands" }

// Needs implements Scaler.
func (*RateBands) Needs() plan.Sections { return plan.Bands }

// Traits implements Scaler.
func (o *RateBands) Traits() Traits { return Traits{Waker: o, Recaller: o} }

// Invoked implements Waker. Decide is called for every app that was idle for a while, since it may have said that it
// need not be called for long.
func (o *RateBands) Invoked(now serving.Time, app serving.AppID, idle time.Duration) bool {
	b := o.app(app)
	if b.called { // what went before the first call was no time between calls
		b.keeper.Idled(now, idle)
	}
	b.called = true
	b.calls++
	return idle > bandLook
}

func (o *RateBands) app(a serving.AppID) *banded {
	for len(o.apps) <= int(a) {
		o.apps = append(o.apps, banded{
			keeper: o.fresh(), since: serving.Never, below: serving.Never, lead: -1, asked: -1,
		})
	}
	return &o.apps[a]
}

func (o *RateBands) fresh() Keeper {
	if o.Keeper != nil {
		return o.Keeper()
	}
	return NewLSTH()
}

// Decide implements Scaler.
func (o *RateBands) Decide(v *View) (bool, serving.Time) {
	pause := or(o.Pause, bandPause)
	from := v.LastRequest.Add(pause)
	if v.LastRequest == 0 {
		from = 0
	}
	may := !v.Requested && v.Now >= from
	answered := v.Plan != o.plan // the plan in force was made for what the apps' asked says
	ask := may && (v.Plan == nil || v.BasisChanged > v.LastRequest)
	again := serving.Never
	next := v.Now.Add(bandLook)
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
			// Nothing runs of it and nothing is coming; a planner that has just failed is left in peace for the longer
			// pause.
			wait := pause
			if answered || b.asked <= 0 {
				wait = min(pause, coldPause)
			}
			wait = min(wait<<min(b.vain, 10), max(wait, calm))
			wants = !v.Requested && (v.LastRequest == 0 || v.Now >= v.LastRequest.Add(wait))
		case need == 0 && none:
			look = serving.Never
		case need == 0:
			if answered && b.asked == 0 {
				look = serving.Never // the planner keeps something
			} else {
				wants = may
			}
		default:
			wants = o.leaves(v, app, b, answered, need, low, up) && may
			if v.Idle[a] != serving.Never && b.below == serving.Never && v.Monitor.Rate(v.Now, app, calm) == 0 {
				look = serving.Never
			}
		}
		ask = ask || wants
		again = min(again, look, until)
	}
	return ask, again
}

// need is the demand of an app, 0 when it may be let go (one that is to have an instance at least is not) or has not
// been called yet and has none, and until when that holds if nothing happens.
func (o *RateBands) need(v *View, app serving.AppID, b *banded, none bool) (rate float64, until serving.Time) {
	if v.Spec.Apps[app].Closed {
		return 0, serving.Never
	}
	since := v.Idle[app]
	demand := o.demand(v, app, b)
	if since == serving.Never || v.Spec.Apps[app].MinInstances > 0 {
		return max(demand, smallest), serving.Never
	}
	if none && !b.called {
		return 0, serving.Never
	}
	if since != b.since {
		b.since = since
		b.spans = append(b.spans[:0], b.keeper.Warm(since)...)
	}
	for _, s := range b.spans {
		from, to := since.Add(s.From), since.Add(s.To)
		if s.From > 0 {
			from = max(from.Add(-o.leads(v, app, b)), since)
		}
		if v.Now < from {
			return 0, from
		}
		if v.Now < to {
			return max(demand, smallest), to
		}
	}
	return 0, serving.Never
}

// leads is how long before a call a start has to begin: what the fastest variant of the slowest stage is believed to
// load in.
func (o *RateBands) leads(v *View, app serving.AppID, b *banded) time.Duration {
	if b.lead >= 0 {
		return b.lead
	}
	b.lead = 0
	for _, s := range v.Spec.Apps[app].Stages {
		least := time.Duration(math.MaxInt64)
		for _, x := range v.Spec.Stages[s].Variants {
			for d := range v.Spec.DeviceTypes {
				least = min(least, v.Fleet.LoadTime(x, serving.DeviceTypeID(d)))
			}
		}
		b.lead = max(b.lead, least)
	}
	return b.lead
}

// demand is what a plan for an app is made for: the highest mean of five seconds while instances linger, or the rate of
// the last second or fifth of one when that is clearly above, a tenth more, and two deviations of what chance brings in
// a second: a plan for no more than the mean has its instances at their upper bounds, where batches wait for each
// other.
func (o *RateBands) demand(v *View, app serving.AppID, b *banded) float64 {
	rate := max(v.above(app, burst, 1), v.above(app, glance, 2))
	if v.Now > serving.Time(burst) {
		rate = max(rate, b.means.highest(v.Now, or(o.Linger, calm), v.Monitor.Rate(v.Now, app, steady)))
	}
	return bandAhead*rate + chance*math.Sqrt(rate*burst.Seconds())/burst.Seconds()
}

// bounds returns Rmin and Rmax of the app's narrowest stage, and whether some stage has no instance, present or coming.
func (o *RateBands) bounds(v *View, app serving.AppID) (low, up float64, none bool) {
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

// leaves tells whether an app's rate has left its band and a plan is to be asked for.
func (o *RateBands) leaves(v *View, app serving.AppID, b *banded, answered bool, need, low, up float64) bool {
	answered = answered && b.asked >= 0
	if v.over(app, up) {
		b.below = serving.Never
		short := answered && up < b.asked && need < b.asked/shrunk // there is no room for more
		return !short || v.Now.Sub(v.LastRequest) >= calm
	}
	alpha := share(o.Alpha, Alpha)
	rate := max(v.Monitor.Rate(v.Now, app, calm), v.Monitor.Rate(v.Now, app, burst))
	if rate >= alpha*up+(1-alpha)*low || answered && need > shrunk*b.asked {
		b.below = serving.Never
		return false
	}
	if b.below == serving.Never {
		b.below = v.Now
	}
	return v.Now.Sub(b.below) >= bandPause
}

// Demand implements Scaler.
func (o *RateBands) Demand(v *View, rates []float64) {
	o.plan = v.Plan
	for a := range rates {
		app := serving.AppID(a)
		b := o.app(app)
		_, _, none := o.bounds(v, app)
		rates[a], _ = o.need(v, app, b, none)
		if none && b.asked > 0 && rates[a] > 0 {
			b.vain++
		} else {
			b.vain = 0
		}
		b.asked = rates[a]
	}
}
