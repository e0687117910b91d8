package scale

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

const (
	// strainWatch is over how long missed queries are counted, and strainSettles how long after it has risen it may
	// rise again: by then the plan for it is in force and loaded.
	strainWatch, strainSettles = 2 * time.Second, 3 * time.Second
	// strainSigmas is by how many standard deviations more queries are missed than the objective allows where a plan
	// does not hold, strainExcess how many times what is allowed.
	strainSigmas, strainExcess = 3, 3
	// leastStrain and mostStrain bound by what part more is planned for at a time, strainLimit in all.
	leastStrain, mostStrain, strainLimit = 0.1, 0.3, 2.0
	// strainHalves is after how long half of it is left.
	strainHalves = 5 * time.Minute
)

// strain is by what factor an app's demand has to be planned for beyond its forecast, because it misses more of its
// queries than plans foresee that are to serve all of them. Whatever plans do not know of is in it.
type strain struct {
	factor float64      // at least 1; 0 before the first look
	at     serving.Time // of the last look
	raised serving.Time
}

// look brings it up to date, and reports whether it has risen.
func (x *strain) look(v *View, app serving.AppID) (risen bool) {
	if x.factor == 0 {
		x.factor = 1
	}
	if v.Now < x.at.Add(time.Second) {
		return false
	}
	x.factor = 1 + (x.factor-1)*math.Exp2(-v.Now.Sub(x.at).Seconds()/strainHalves.Seconds())
	x.at = v.Now
	if v.Plan == nil || v.Now < max(x.raised, serving.Time(firstLook)).Add(strainSettles) {
		return false
	}
	if v.sheds(app) {
		return false // the plan says so
	}
	if !v.Spec.Rents() {
		return false // there are no machines to add
	}
	came := v.Monitor.Rate(v.Now, app, strainWatch) * strainWatch.Seconds()
	missed := v.Monitor.Missed(v.Now, app, strainWatch) * strainWatch.Seconds()
	allowed := came * v.Spec.Apps[app].SLO.Allowed()
	if missed <= max(strainExcess*allowed, allowed+strainSigmas*math.Sqrt(allowed)) || missed < 5 {
		return false
	}
	x.factor = min(x.factor*(1+min(max(missed/came, leastStrain), mostStrain)), strainLimit)
	x.raised = v.Now
	return true
}
