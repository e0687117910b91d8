// Package scale decides when to ask for a new plan. One file, one rule. What to run is the planner's business.
package scale

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// Scaler decides when to plan anew. The engine calls Decide at the time the last answer asked for, and after a change of
// the instances.
type Scaler interface {
	// Name is the rule's registry name.
	Name() string
	// Needs lists the sections of the plan the rule reads.
	Needs() plan.Sections
	// Decide answers whether to request a plan now and when to ask again (serving.Never: only after a change).
	Decide(v *View) (replan bool, again serving.Time)
}

// View is what a rule may see.
type View struct {
	Now     serving.Time
	Fleet   *fleet.Fleet
	Monitor *monitor.Rates
	Plan    *plan.Plan // in force; nil before the first
	Asked   bool       // a request is under way
	LastAsk serving.Time
}

// Fixed never asks: the first plan stays.
type Fixed struct{}

// Name implements Scaler.
func (Fixed) Name() string { return "fixed" }

// Needs implements Scaler.
func (Fixed) Needs() plan.Sections { return 0 }

// Decide implements Scaler.
func (Fixed) Decide(*View) (bool, serving.Time) { return false, serving.Never }

// Replan asks for a plan every Interval (Proteus §4 plans every 30 s).
type Replan struct{ Interval time.Duration }

// Name implements Scaler.
func (Replan) Name() string { return "replan" }

// Needs implements Scaler.
func (Replan) Needs() plan.Sections { return 0 }

// Decide implements Scaler.
func (r Replan) Decide(v *View) (bool, serving.Time) {
	due := v.LastAsk.Add(r.Interval)
	if v.Now < due {
		return false, due
	}
	return !v.Asked, v.Now.Add(r.Interval)
}
