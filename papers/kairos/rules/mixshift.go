package rules

import (
	"cmp"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/monitor"
)

const (
	mixPause = 5 * time.Second // between two requests for plans, at least
	// mixMinQueries is how many queries of an app are awaited, once, before a plan that was made for no sizes in
	// particular is replaced.
	mixMinQueries = 1000
	// mixStep is how many new queries come between two comparisons, at least. It is an eighth of the queries compared
	// where that is more.
	mixStep = 250
	// mixMinShift is the smallest change of a share that is worth a plan.
	mixMinShift = 0.05
)

// MixShift asks for a plan when the sizes of an app's queries differ from those that the plan in force was made for
// (Kairos §8.4). It uses a statistic over the queries since then (monitor.View.Shift) and no timer. It also asks when
// any other input of planning has changed. It never asks within Pause of the last request.
type MixShift struct {
	Pause time.Duration // 0 means 5 s

	plan         *plan.Plan
	from         []uint64 // by app: sizes counted when the plan came into force
	next         []uint64 // by app: how many since then the next comparison waits for
	unsizedAsked bool     // a plan for no sizes in particular was to be replaced
}

// NewMixShift returns the rule. Every engine needs its own.
func NewMixShift(pause time.Duration) *MixShift { return &MixShift{Pause: pause} }

// Name implements scale.Scaler.
func (*MixShift) Name() string { return "mixshift" }

// Forget implements engine.Forgetter.
func (m *MixShift) Forget(_ serving.Time, f *serving.Fresh) {
	serving.Forget(m.from, f.Apps, 0)
	serving.Forget(m.next, f.Apps, mixStep)
}

// Needs implements scale.Scaler.
func (*MixShift) Needs() plan.Sections { return 0 }

// Traits implements scale.Scaler.
func (*MixShift) Traits() scale.Traits { return scale.Traits{} }

// Decide implements scale.Scaler.
func (m *MixShift) Decide(v *scale.View) (bool, serving.Time) {
	if v.Plan != m.plan || m.from == nil {
		m.begin(v)
	}
	from := v.LastRequest.Add(cmp.Or(m.Pause, mixPause))
	if v.LastRequest == 0 {
		from = 0
	}
	wake := max(v.Now.Add(scale.Poll), from)
	if v.Requested || v.Now < from {
		return false, wake
	}
	return v.Changed() > v.LastRequest || m.shifted(v), wake
}

// begin resets the counts for a plan that came into force.
func (m *MixShift) begin(v *scale.View) {
	m.plan, m.from, m.next = v.Plan, m.from[:0], m.next[:0]
	for a := range v.Spec.Apps {
		m.from, m.next = append(m.from, v.Monitor.SizesSeen(serving.AppID(a))), append(m.next, mixStep)
	}
}

// shifted compares the sizes of every app that enough new queries were seen of.
func (m *MixShift) shifted(v *scale.View) bool {
	found := false
	for a := range v.Spec.Apps {
		app := serving.AppID(a)
		if v.Plan == nil || a >= len(v.Plan.Mixes) {
			if !m.unsizedAsked && v.Monitor.SizesSeen(app) >= mixMinQueries {
				m.unsizedAsked, found = true, true
			}
			continue
		}
		seen := v.Monitor.SizesSeen(app) - m.from[a]
		if seen < m.next[a] {
			continue
		}
		n := int(min(seen, monitor.KeptSizes))
		m.next[a] = seen + uint64(max(mixStep, n/8))
		statistic, critical := v.Monitor.Shift(app, &v.Plan.Mixes[a], n)
		found = found || statistic > max(critical, mixMinShift)
	}
	return found
}

// Demand implements scale.Scaler as scale.Replan does.
func (*MixShift) Demand(v *scale.View, rates []float64) { scale.Replan{}.Demand(v, rates) }
