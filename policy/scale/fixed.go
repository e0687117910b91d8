package scale

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Fixed never asks for a plan. The first plan stays.
type Fixed struct{}

// Name implements Scaler.
func (Fixed) Name() string { return "fixed" }

// Needs implements Scaler.
func (Fixed) Needs() plan.Sections { return 0 }

// Traits implements Scaler.
func (Fixed) Traits() Traits { return Traits{} }

// Decide implements Scaler.
func (Fixed) Decide(*View) (bool, serving.Time) { return false, serving.Never }

// Demand implements Scaler: the mean rate of the last ten seconds, and at least MinDemand, since it cannot wake an app
// that has lost its last instance.
func (Fixed) Demand(v *View, rates []float64) {
	for a := range rates {
		rates[a] = v.Monitor.Rate(v.Now, serving.AppID(a), 10*time.Second)
		rates[a] = max(rates[a], MinDemand)
	}
}
