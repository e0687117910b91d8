package scale

import (
	"cmp"
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/slidingmax"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

const (
	// anticipateInterval is between periodic plans, and firstLook before the first one: by then it has been seen how
	// unevenly queries arrive.
	anticipateInterval = 5 * time.Second
	firstLook          = 2 * time.Second
	// lead is how far ahead the demand is forecast: about as long as a plan and a load take.
	lead = 2 * time.Second
	// trendFrom is the older of the two windows that a trend is taken from; burstWindow is the newer.
	trendFrom = 4 * time.Second
	// longestLevel is the longest time over which a rate is averaged.
	longestLevel = 16 * time.Second
	// changeSigmas is how many standard errors the newer half of a window differs from all of it where the rate has
	// changed.
	changeSigmas = 2.5
	// forecastSigmas is how many standard errors of the rate the forecast lies above it.
	forecastSigmas = 1
	// release is how long a forecast stays in force after the demand has fallen, beside the start of machines: those
	// that are given back have to come and load again.
	release = 6 * time.Second
	// patientRelease is the same while an app misses more than its objective allows: where the demand comes and goes
	// faster than machines start.
	patientRelease = 40 * time.Second
	// clear is by what part of a plan's demand, and clearRate by how many queries/s beside it, a forecast differs for
	// a periodic plan.
	clear, clearRate = 0.15, 0.5
	// contentChange is the relative difference of a fan-out or of run times from the planned ones that is worth a plan.
	contentChange = 0.15
	// sizesKnown is how many queries tell the sizes that an app's queries have (the engine plans with them from then
	// on), sizesStep how many come between two comparisons, and sizesChange the change of a share that is worth a plan.
	sizesKnown, sizesStep, sizesChange = 100, 250, 0.1
	// beyond is by what factor the forecast has to exceed the demand of the plan in force.
	beyond = 1.15
)

// Anticipate asks for plans for a forecast of the demand (ours): periodically while it changes, and at once when the
// forecast exceeds what the plan in force was made for and carries, when more waits than that plan can serve within
// the objective, when content makes more or less work of a graph, when queries have other sizes, or when another input
// of planning has changed. The forecast of an app is its rate, plus what a rise since the seconds before adds until
// machines are loaded, plus the standard error of the rate; or what clients declare. It is more where demand comes
// again after a minute, an hour or a day, and more came then. Its largest value of the last seconds counts: of more of
// them for an app that misses more of its queries than its objective allows.
//
// Every engine needs its own.
type Anticipate struct {
	Interval time.Duration // 0 means 5 s
	Pause    time.Duration // least time between two requests; 0 means Pause
	// Certain takes the rate of the last seconds for the demand, without what may come.
	Certain bool

	most     []slidingmax.Max // by app: the forecasts of the last seconds
	longMost []slidingmax.Max // by app: those of the last patientRelease
	patience []patience       // by app
	seasonal []seasonal       // by app
	strained []strain         // by app
	risen    bool             // some strain has, since the last request
	now      []float64        // by app, queries/s
	sizesAt  []uint64         // by app: how many sizes have to be seen for the next comparison
}

// Name implements Scaler.
func (*Anticipate) Name() string { return "anticipate" }

// Forget implements engine.Forgetter.
func (x *Anticipate) Forget(now serving.Time, f *serving.Fresh) {
	serving.Forget(x.most, f.Apps, slidingmax.Max{})
	serving.Forget(x.longMost, f.Apps, slidingmax.Max{})
	serving.Forget(x.patience, f.Apps, patience{})
	serving.Forget(x.seasonal, f.Apps, seasonal{from: now / tenth})
	serving.Forget(x.strained, f.Apps, strain{})
	serving.Forget(x.now, f.Apps, 0)
	serving.Forget(x.sizesAt, f.Apps, sizesKnown)
}

// Needs implements Scaler.
func (*Anticipate) Needs() plan.Sections { return 0 }

// Traits implements Scaler.
func (*Anticipate) Traits() Traits { return Traits{Follows: true, Least: MinDemand} }

// Decide implements Scaler.
func (x *Anticipate) Decide(v *View) (bool, serving.Time) {
	x.look(v)
	wake := v.Now.Add(Poll)
	from := v.LastRequest.Add(cmp.Or(x.Pause, Pause))
	due := v.LastRequest.Add(cmp.Or(x.Interval, anticipateInterval))
	if v.LastRequest == 0 {
		due, from = serving.Time(firstLook), serving.Time(cmp.Or(x.Pause, Pause))
	}
	switch {
	case v.Requested:
		return false, wake
	case v.Now >= v.BasisDue() || v.Plan == nil:
		return true, wake
	case v.Now >= due && x.changed(v):
		return true, wake
	case v.Now >= from && x.resized(v):
		return true, wake
	case v.Now >= from && v.Factors != nil &&
		v.Factors.Changed(v.Now, v.Plan.FanOuts, v.Plan.Ballooning, contentChange):
		return true, wake
	}
	return v.Now >= from && (x.risen || x.exceeds(v) || v.Backlogged()), wake
}

// exceeds tells whether an app's forecast is beyond what the plan in force was made for, and what it carries. The plan
// may shed some of that: it was asked for all the same.
func (x *Anticipate) exceeds(v *View) bool {
	for a := range v.Spec.Apps {
		app := serving.AppID(a)
		if _, asked := v.Planned(app); x.now[a] > beyond*asked && v.RateExceeds(app, asked) && v.surely(app, asked) {
			return true
		}
	}
	return false
}

// changed tells whether an app's forecast differs clearly from what the plan in force was made for.
func (x *Anticipate) changed(v *View) bool {
	for a := range v.Spec.Apps {
		asked := 0.0
		if a < len(v.Plan.Demand) {
			asked = v.Plan.Demand[a]
		}
		if math.Abs(x.now[a]-asked) > clear*asked+clearRate && max(x.now[a], asked) > MinDemand &&
			v.surely(serving.AppID(a), asked) {
			return true
		}
	}
	return false
}

// surely tells whether the present rate of an app differs from one that was planned for by more than chance. It counts
// where nothing can be added: there machines are taken from other apps.
func (v *View) surely(app serving.AppID, asked float64) bool {
	if v.canAdd() {
		return true
	}
	level, window := level(v, app)
	uneven := max(v.Monitor.Dispersion(v.Now, app), 1)
	return math.Abs(level-asked) > changeSigmas*math.Sqrt(uneven*max(level, asked)/window.Seconds())
}

// resized tells whether the sizes of an app's queries are others than the plan in force was made for.
func (x *Anticipate) resized(v *View) (some bool) {
	for a := range min(len(v.Plan.Mixes), len(v.Spec.Apps)) {
		app := serving.AppID(a)
		seen := v.Monitor.SizesSeen(app)
		if seen < x.sizesAt[a] || v.Spec.Apps[a].Closed {
			continue
		}
		x.sizesAt[a] = seen + sizesStep
		statistic, critical := v.Monitor.Shift(app, &v.Plan.Mixes[a], int(min(seen, 2*sizesStep)))
		some = some || statistic > max(critical, sizesChange)
	}
	return some
}

// look brings the forecasts up to date.
func (x *Anticipate) look(v *View) {
	for len(x.most) < len(v.Spec.Apps) {
		x.most, x.now = append(x.most, slidingmax.Max{}), append(x.now, 0)
		x.longMost, x.patience = append(x.longMost, slidingmax.Max{}), append(x.patience, patience{})
		x.sizesAt = append(x.sizesAt, sizesKnown)
		x.seasonal, x.strained = append(x.seasonal, seasonal{from: v.Now / tenth}), append(x.strained, strain{})
	}
	canAdd := v.canAdd()
	for a := range v.Spec.Apps {
		app := serving.AppID(a)
		x.risen = x.strained[a].look(v, app) || x.risen
		x.seasonal[a].count(v.Now, func(window time.Duration) float64 { return v.Monitor.Rate(v.Now, app, window) })
		if d := v.Monitor.Declared(app); d > 0 && !v.BurstAbove(app, d) {
			x.now[a] = d // clients say how much comes, and when it ends
			continue
		}
		if x.Certain {
			x.now[a], _ = level(v, app)
			continue
		}
		coming := max(x.seasonal[a].ahead(v.Now, lead+v.Start), forecast(v, app))
		if v.Now < serving.Time(firstLook) && !v.Spec.Rents() {
			// A rate of a few queries is off by half of itself. It counts now, and is no peak to be ready for later:
			// machines would be taken from other apps for it. Where machines can be rented, some more until it is known
			// are worth their price: without them 0.1 % more are late in the first half minute (reproduce worlds).
			x.now[a] = coming * x.strained[a].factor
			continue
		}
		start := inSteps(v.Start)
		x.now[a] = x.most[a].Highest(int64(v.Now), int64(release+start), coming)
		// It is kept up to date, also where it is not used.
		long := x.longMost[a].Highest(int64(v.Now), int64(patientRelease+start), coming)
		x.patience[a].look(v, app)
		if canAdd && x.patience[a].tried(v.Spec.Apps[a].SLO.Allowed()) && !v.sheds(app) {
			x.now[a] = long
		}
		x.now[a] *= x.strained[a].factor
	}
}

// level is the rate of an app in queries/s, and the time over which it was averaged: the longest within which it has
// not changed by more than chance.
func level(v *View, app serving.AppID) (level float64, window time.Duration) {
	uneven := max(v.Monitor.Dispersion(v.Now, app), 1)
	newer := v.Monitor.Rate(v.Now, app, burstWindow)
	window = min(firstLook, max(time.Duration(v.Now), 1))
	level = v.Monitor.Rate(v.Now, app, window)
	if wrong := math.Sqrt(uneven * level / burstWindow.Seconds()); newer > level+changeSigmas*wrong {
		window = min(burstWindow, window)
	}
	return steady(v, app, window)
}

// steady is the rate of an app in queries/s over a window, and that window, or over the longest of its doubles within
// which it has not changed by more than chance.
func steady(v *View, app serving.AppID, from time.Duration) (level float64, window time.Duration) {
	uneven := max(v.Monitor.Dispersion(v.Now, app), 1)
	level, window = v.Monitor.Rate(v.Now, app, from), from
	most := min(longestLevel, time.Duration(v.Now))
	for longer := 2 * window; window >= firstLook && longer <= most; longer *= 2 {
		mean := v.Monitor.Rate(v.Now, app, longer)
		half := v.Monitor.Rate(v.Now, app, longer/2)
		if math.Abs(half-mean) > changeSigmas*math.Sqrt(uneven*max(mean, half)/longer.Seconds()) {
			break
		}
		level, window = mean, longer
	}
	return level, window
}

// Recent is the rate of an app in queries/s over the last seconds: the longest time up to now, from two seconds on,
// within which it has not changed by more than chance. Unlike a forecast it has no burst of the last instants in it.
func Recent(v *View, app serving.AppID) float64 {
	l, _ := steady(v, app, max(min(firstLook, time.Duration(v.Now)), 1))
	return l
}

// forecast is the demand of an app to plan for, in queries/s, by what has come.
func forecast(v *View, app serving.AppID) float64 {
	uneven := max(v.Monitor.Dispersion(v.Now, app), 1)
	newer := v.Monitor.Rate(v.Now, app, burstWindow)
	level, window := level(v, app)
	rise := 0.0
	if older := v.Monitor.Rate(v.Now, app, trendFrom); window < trendFrom && newer > older {
		wrong := math.Sqrt(uneven * newer / burstWindow.Seconds())
		// The middles of the windows lie so far apart.
		apart := (trendFrom - burstWindow).Seconds() / 2
		rise = min(max(newer-older-wrong, 0)/apart*lead.Seconds(), newer)
	}
	return level + rise + forecastSigmas*math.Sqrt(uneven*level/window.Seconds())
}

// startStep is how exactly the start of machines counts for how long a forecast stays in force.
const startStep = 10 * time.Second

// inSteps rounds up, so that small changes of what is believed change nothing.
func inSteps(d time.Duration) time.Duration { return (d + startStep - 1) / startStep * startStep }

// Demand implements Scaler.
func (x *Anticipate) Demand(v *View, rates []float64) {
	x.look(v)
	for a := range rates {
		rates[a] = max(x.now[a], MinDemand)
	}
	x.risen = false
}
