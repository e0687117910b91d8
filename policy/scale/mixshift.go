package scale

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/monitor"
)

const (
	mixPause = 5 * time.Second // between two requests for plans, at least
	mixLook  = 100 * time.Millisecond
	// mixFirst is how many queries are seen before a plan that was made for no sizes in particular is made anew, once.
	mixFirst = 1000
	// mixEvery is how many new queries a look takes, at least; an eighth of those compared, when that is more.
	mixEvery = 250
	// mixLeast is the smallest change of a share that is worth a plan, however sure it is.
	mixLeast = 0.05
)

// MixShift asks for a plan when the sizes of an app's queries are no longer those that the plan in force was made for
// (Kairos §8.4): by a statistic of the queries since then, monitor.Rates.Shift, and not by a timer. It also asks when
// anything else that plans are made from has changed, and never within Pause of the last request.
type MixShift struct {
	Pause time.Duration // 0 means 5 s

	plan *plan.Plan
	from []uint64 // by app: sizes counted when the plan came into force
	next []uint64 // by app: of those since, how many the next look waits for
	told bool     // a plan for no sizes in particular was asked about
}

// NewMixShift returns the rule. Every engine needs its own.
func NewMixShift(pause time.Duration) *MixShift { return &MixShift{Pause: pause} }

// Name implements Scaler.
func (*MixShift) Name() string { return "mixshift" }

// Needs implements Scaler.
func (*MixShift) Needs() plan.Sections { return 0 }

// Traits implements Scaler.
func (*MixShift) Traits() Traits { return Traits{} }

// Decide implements Scaler.
func (m *MixShift) Decide(v *View) (bool, serving.Time) {
	if v.Plan != m.plan || m.from == nil {
		m.begin(v)
	}
	from := v.LastRequest.Add(or(m.Pause, mixPause))
	if v.LastRequest == 0 {
		from = 0
	}
	again := max(v.Now.Add(mixLook), from)
	if v.Requested || v.Now < from {
		return false, again
	}
	return v.BasisChanged > v.LastRequest || m.shifted(v), again
}

// begin takes note of a plan that came into force.
func (m *MixShift) begin(v *View) {
	m.plan, m.from, m.next = v.Plan, m.from[:0], m.next[:0]
	for a := range v.Spec.Apps {
		m.from, m.next = append(m.from, v.Monitor.Sized(serving.AppID(a))), append(m.next, mixEvery)
	}
}

// shifted looks at every app of which enough new queries were seen.
func (m *MixShift) shifted(v *View) bool {
	found := false
	for a := range v.Spec.Apps {
		app := serving.AppID(a)
		if v.Plan == nil || a >= len(v.Plan.Mixes) {
			if !m.told && v.Monitor.Sized(app) >= mixFirst {
				m.told, found = true, true
			}
			continue
		}
		seen := v.Monitor.Sized(app) - m.from[a]
		if seen < m.next[a] {
			continue
		}
		n := int(min(seen, monitor.Kept))
		m.next[a] = seen + uint64(max(mixEvery, n/8))
		statistic, critical := v.Monitor.Shift(app, &v.Plan.Mixes[a], n)
		found = found || statistic > max(critical, mixLeast)
	}
	return found
}

// Demand implements Scaler as Replan does.
func (*MixShift) Demand(v *View, rates []float64) { Replan{}.Demand(v, rates) }
