package scale

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

const (
	// patienceHalves is after how long half of what was counted is forgotten.
	patienceHalves = 3 * time.Minute
	// patienceLeast is how many queries an app misses at least before it counts.
	patienceLeast = 5
	// countedAtMost is how far back the monitor counts.
	countedAtMost = 30 * time.Second
)

// patience counts how many of an app's queries are missed, to tell whether a forecast had better stay in force for
// longer: where the demand comes and goes faster than machines start, each rise finds too few of them.
type patience struct {
	came, missed float64
	at           serving.Time // of the last look
}

// look counts, about once a second.
func (x *patience) look(v *View, app serving.AppID) {
	since := v.Now.Sub(x.at)
	if since < time.Second {
		return
	}
	since = min(since, countedAtMost)
	x.at = v.Now
	left := math.Exp2(-since.Seconds() / patienceHalves.Seconds())
	x.came = x.came*left + v.Monitor.Rate(v.Now, app, since)*since.Seconds()
	x.missed = x.missed*left + v.Monitor.Missed(v.Now, app, since)*since.Seconds()
}

// canAdd tells whether plans can add to what runs: machines that are rented, or parts of machines. Where whole machines
// are owned all of them are in use, and being ready for a peak of one app takes machines from others.
func (v *View) canAdd() bool {
	return v.Spec.Rents() || slices.ContainsFunc(v.Spec.DeviceTypes, func(d serving.DeviceType) bool { return d.Part })
}

// sheds tells whether the plan in force leaves out some of an app's demand: then it misses queries whatever is ready.
func (v *View) sheds(app serving.AppID) bool {
	return v.Plan != nil && int(app) < len(v.Plan.Shed) && v.Plan.Shed[app] > 0
}

// tried tells whether the app misses more of its queries than the allowed part.
func (x *patience) tried(allowed float64) bool {
	return x.missed >= patienceLeast && x.missed > allowed*x.came
}
