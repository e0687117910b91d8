package rules

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
)

// Uncovered asks for a plan when the arrival rate of the last half second exceeds every rate that the plan in force has
// a policy for (RAMSIS §3.2.2), and when queries arrive by a pattern that its policies were not made for (§3.1.1), if
// they say for which. The old policies serve until the plan comes. It also asks when a worker was lost or came back.
type Uncovered struct{}

// Name implements scale.Scaler.
func (Uncovered) Name() string { return "uncovered" }

// Needs implements scale.Scaler.
func (Uncovered) Needs() plan.Sections { return plan.Tables }

// Traits implements scale.Scaler.
func (Uncovered) Traits() scale.Traits { return scale.Traits{} }

const (
	// uncoveredHeadRoom is a factor on the rate that keeps a rising load from asking for a plan at every step.
	uncoveredHeadRoom = 1.1
)

// Decide implements scale.Scaler.
func (Uncovered) Decide(v *scale.View) (bool, serving.Time) {
	wake := v.Now.Add(scale.Poll)
	if v.Requested {
		return false, wake
	}
	if v.Now >= v.BasisDue() {
		return true, wake
	}
	for a := range v.Spec.Apps {
		app := serving.AppID(a)
		rate := v.Monitor.Recent(v.Now, app)
		if v.Now < serving.Time(scale.Poll) {
			continue // too early to know a rate
		}
		if policyMissing(v.Plan, v.Spec, app, rate) || unexpectedPattern(v, app) {
			return true, wake
		}
	}
	return false, wake
}

// policyMissing reports whether some stage of an app has no policy for a rate. The rate counts up to the plan's
// capacity, beyond which no policies are made.
func policyMissing(p *plan.Plan, spec *serving.Spec, app serving.AppID, rate float64) bool {
	if p == nil {
		return false
	}
	if a := int(app); a < len(p.Capacity) && p.Capacity[a] > 0 {
		rate = min(rate, p.Capacity[a])
	}
	for i := range p.Policies {
		if x := &p.Policies[i]; spec.Stages[x.Stage].App == app && !x.Covers(rate) {
			return true
		}
	}
	return false
}

// patternTime is how long arrivals are watched before their pattern is judged: by then the dispersion of arrivals by
// chance is known to a sixth.
const patternTime = 10 * time.Second

// unexpectedPattern reports whether some stage of an app has policies for another pattern of arrivals than is seen.
func unexpectedPattern(v *scale.View, app serving.AppID) bool {
	if v.Plan == nil || v.Now < serving.Time(patternTime) || v.Now < v.LastRequest.Add(scale.Pause) {
		return false
	}
	return slices.ContainsFunc(v.Plan.Policies, func(x plan.Policies) bool {
		return v.Spec.Stages[x.Stage].App == app && !x.Expects(v.Monitor.Dispersion(v.Now, app))
	})
}

// Demand implements scale.Scaler: at least scale.MinDemand, since it cannot wake an app that has lost its last
// instance.
func (Uncovered) Demand(v *scale.View, rates []float64) {
	for a := range rates {
		rates[a] = v.Monitor.Recent(v.Now, serving.AppID(a)) * uncoveredHeadRoom
		if v.Plan != nil && a < len(v.Plan.Capacity) && v.Plan.Capacity[a] > 0 {
			rates[a] = min(rates[a], v.Plan.Capacity[a])
		}
		rates[a] = max(rates[a], scale.MinDemand)
	}
}
