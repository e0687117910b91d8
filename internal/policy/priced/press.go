package priced

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
)

// press is by how much more than usual an answer in time counts beside its accuracy, for all apps alike. It rises while
// some app misses more of its queries than its objective allows, since serving comes before accuracy. With the usual
// weight alone, accurate answers of one app may be worth more than any answer of another one that takes long.
type press struct {
	more float64
	at   serving.Time // of the last look
}

const (
	// mostPress bounds it: serving then counts as in the planner's program. pressGain is by how much it changes in a
	// second for each part of the queries that is missed beyond what is allowed.
	mostPress, pressGain = 2, 4
	// pressWatch is over how long missed queries are counted, and pressEvery the least time between two looks.
	pressWatch, pressEvery = 3 * time.Second, time.Second
	// longestLook bounds how much time a look stands for.
	longestLook = 3 * time.Second
	// fewMissed is how many missed queries of an app say nothing yet.
	fewMissed = 3
)

// follow brings it up to date by the app that misses most beyond what its objective allows.
func (p *press) follow(v *route.View) {
	since := v.Now.Sub(p.at)
	if since < pressEvery {
		return
	}
	p.at = v.Now
	worst := math.Inf(-1)
	spec := v.Fleet.Spec()
	for a := range spec.Apps {
		came := v.Monitor.Rate(v.Now, serving.AppID(a), pressWatch)
		if came == 0 {
			continue
		}
		missed := v.Monitor.Missed(v.Now, serving.AppID(a), pressWatch)
		if missed*pressWatch.Seconds() < fewMissed-0.5 {
			missed = 0
		}
		worst = max(worst, missed/came-spec.Apps[a].SLO.Allowed())
	}
	if !math.IsInf(worst, -1) {
		p.more = min(max(p.more+pressGain*min(since, longestLook).Seconds()*worst, 0), mostPress)
	}
}

// weighServing sets what a task of each stage is worth in time at best accuracy.
func (r *Rule) weighServing() {
	r.emphasise()
	for s := range r.stages {
		x := &r.stages[s]
		x.value = (1 + served + r.press.more + r.apps[x.app].bonus) * x.right
	}
}
