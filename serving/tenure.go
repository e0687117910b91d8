package serving

import "math"

// Tenure says whether money is saved by leaving a machine of a device type idle.
type Tenure uint8

const (
	// TenureUnstated is what a configuration says that says nothing. The machines count as owned, but for planners
	// that keep the rule of a paper in which every machine is rented.
	TenureUnstated Tenure = iota
	// Owned machines are there anyway: no planner saves their price.
	Owned
	// Rented machines are paid for while they are used.
	Rented
)

var tenureNames = [...]string{"", "owned", "rented"}

// Tenures are the words of ParseTenure.
func Tenures() []string { return tenureNames[1:] }

// ParseTenure reads owned or rented. Anything else is TenureUnstated.
func ParseTenure(word string) Tenure {
	for t, name := range tenureNames {
		if word == name {
			return Tenure(t)
		}
	}
	return TenureUnstated
}

// String returns the word; empty for TenureUnstated.
func (t Tenure) String() string { return tenureNames[t] }

// BestAccuracy returns the accuracy of an app's answers when each of its stages uses its most accurate variant: the
// product over the stages.
func (s *Spec) BestAccuracy(a AppID) float64 {
	best := 1.0
	for _, st := range s.Apps[a].Stages {
		best *= s.bestOf(st)
	}
	return best
}

func (s *Spec) bestOf(st StageID) float64 {
	best := 0.0
	for _, v := range s.Stages[st].Variants {
		best = max(best, s.Variants[v].Accuracy)
	}
	return best
}

// AccuracyForTarget returns the least accuracy of a stage's variants with which the answers of its app keep the app's
// accuracy target whatever the mix of variants: every stage may fall by the same factor below its best. It is at least
// the app's floor, and the floor where the app has no target.
func (s *Spec) AccuracyForTarget(st StageID) float64 {
	app := &s.Apps[s.Stages[st].App]
	best := s.BestAccuracy(s.Stages[st].App)
	if app.AccuracyTarget <= 0 || best <= 0 {
		return app.Floor
	}
	part := math.Pow(app.AccuracyTarget/best, 1/float64(len(app.Stages)))
	return max(app.Floor, s.bestOf(st)*part*(1-targetTolerance))
}

// targetTolerance keeps a target that is met exactly from being missed by rounding.
const targetTolerance = 1e-9
