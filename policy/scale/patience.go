package scale

import (
	"math"
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

// tried tells whether the app misses more of its queries than the allowed part.
func (x *patience) tried(allowed float64) bool {
	return x.missed >= patienceLeast && x.missed > allowed*x.came
}
