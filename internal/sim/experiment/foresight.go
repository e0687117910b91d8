package experiment

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
)

// Foresight is a scaler that knows the future: at the start of every window it asks for a plan for the demand of that
// window. It shows how good a system's planner is. The distance to the same system with its own scaler is the price of
// reacting to demand instead of knowing it.
type Foresight struct {
	Window time.Duration
	Rates  [][]float64 // demand by window, then by AppID, in queries/s
}

// Name implements scale.Scaler.
func (Foresight) Name() string { return "foresight" }

// Needs implements scale.Scaler.
func (Foresight) Needs() plan.Sections { return 0 }

// Traits implements scale.Scaler.
func (Foresight) Traits() scale.Traits { return scale.Traits{} }

// Decide implements scale.Scaler.
func (f Foresight) Decide(v *scale.View) (bool, serving.Time) {
	at := int64(v.Now) / int64(f.Window)
	if int(at) >= len(f.Rates) {
		return false, serving.Never
	}
	next := serving.Time((at + 1) * int64(f.Window))
	asked := v.LastRequest > 0 && int64(v.LastRequest)/int64(f.Window) == at || v.LastRequest == 0 && at == 0
	if v.Requested || asked {
		return false, next
	}
	return true, next
}

// Demand implements scale.Scaler.
func (f Foresight) Demand(v *scale.View, rates []float64) {
	at := min(int(int64(v.Now)/int64(f.Window)), len(f.Rates)-1)
	copy(rates, f.Rates[at])
}
