package scale

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Uncovered asks for a plan when the arrival rate of the last half second exceeds every rate that the plan in force has
// a policy for; the one for most serves until the answer comes (RAMSIS §3.2.2). It also asks when a worker was lost or
// came back.
type Uncovered struct{}

// Name implements Scaler.
func (Uncovered) Name() string { return "uncovered" }

// Needs implements Scaler.
func (Uncovered) Needs() plan.Sections { return plan.Tables }

// Traits implements Scaler.
func (Uncovered) Traits() Traits { return Traits{} }

const (
	uncoveredLook = 100 * time.Millisecond
	// ahead is how far beyond the rate seen the new policy reaches, so that a rising load does not ask at every step.
	ahead = 1.1
)

// Decide implements Scaler.
func (Uncovered) Decide(v *View) (bool, serving.Time) {
	again := v.Now.Add(uncoveredLook)
	if v.Requested {
		return false, again
	}
	if v.BasisChanged > v.LastRequest {
		return true, again
	}
	for a := range v.Spec.Apps {
		app := serving.AppID(a)
		rate := v.Monitor.Recent(v.Now, app)
		if v.Now < serving.Time(uncoveredLook) {
			continue // too early to tell a rate
		}
		if beyond(v.Plan, v.Spec, app, rate) {
			return true, again
		}
	}
	return false, again
}

// beyond tells whether some policy of an app's stages does not reach a rate. What exceeds the capacity of the workers
// has no policy of its own: all are the same there.
func beyond(p *plan.Plan, spec *serving.Spec, app serving.AppID, rate float64) bool {
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

// Demand implements Scaler.
func (Uncovered) Demand(v *View, rates []float64) {
	for a := range rates {
		rates[a] = v.Monitor.Recent(v.Now, serving.AppID(a)) * ahead
		if v.Plan != nil && a < len(v.Plan.Capacity) && v.Plan.Capacity[a] > 0 {
			rates[a] = min(rates[a], v.Plan.Capacity[a])
		}
	}
}
