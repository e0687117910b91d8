package priced

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
)

// multiplier is the price of a constraint on what is served over time: it rises while the constraint is broken, and
// falls while there is room, in proportion to by how much (a subgradient step on its dual).
type multiplier struct {
	more float64 // beside 1
	at   serving.Time
}

const (
	// mostMore bounds multipliers: the constraint then counts as in the planner's program.
	mostMore = 2
	// pressureGain is by how much that of serving changes in a second for each part of the queries that is missed
	// beyond what is allowed, and pressureWatch over how long missed queries are counted.
	pressureGain, pressureWatch = 4, 3 * time.Second
	// lookEvery is the least time between two looks. longestLook bounds how much time a look stands for.
	lookEvery, longestLook = time.Second, 3 * time.Second
	// fewMissed is how many missed queries of an app say nothing yet.
	fewMissed = 3
)

// due reports whether it is time for another look.
func (m *multiplier) due(now serving.Time) bool { return now.Sub(m.at) >= lookEvery }

// move takes up a look: by how much the constraint is broken.
func (m *multiplier) move(now serving.Time, gain, short float64) {
	m.more = min(max(m.more+gain*min(now.Sub(m.at), longestLook).Seconds()*short, 0), mostMore)
	m.at = now
}

// followMissed brings up to date by how much more than usual an answer in time counts beside its accuracy, for all apps
// alike. That rises while some app misses more of its queries than its objective allows, since serving comes before
// accuracy: with the usual weight alone, accurate answers of one app may be worth more than any answer of another one
// that takes long. The app that misses most beyond what it may counts.
func (r *Rule) followMissed(v *route.View) {
	if !r.pressure.due(v.Now) {
		return
	}
	worst := math.Inf(-1)
	spec := v.Fleet.Spec()
	for a := range spec.Apps {
		came := v.Monitor.Rate(v.Now, serving.AppID(a), pressureWatch)
		if came == 0 {
			continue
		}
		missed := v.Monitor.Missed(v.Now, serving.AppID(a), pressureWatch)
		if missed*pressureWatch.Seconds() < fewMissed-0.5 {
			missed = 0
		}
		worst = max(worst, missed/came-spec.Apps[a].SLO.Allowed())
	}
	if math.IsInf(worst, -1) {
		worst = 0 // nothing came
	}
	r.pressure.move(v.Now, pressureGain, worst)
}

// weighServing sets what a task of each stage is worth in time at best accuracy.
func (r *Rule) weighServing() {
	r.emphasise()
	for s := range r.stages {
		x := &r.stages[s]
		x.value = (1 + served + r.pressure.more + r.apps[x.app].bonus) * x.right
	}
}
