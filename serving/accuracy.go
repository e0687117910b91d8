package serving

import "math"

// BestAccuracy returns the accuracy of an app's answers when each of its stages uses its most accurate variant: the
// product over the stages.
func (s *Spec) BestAccuracy(a AppID) float64 {
	best := 1.0
	for _, st := range s.Apps[a].Stages {
		best *= s.BestOfStage(st)
	}
	return best
}

// BestOfStage returns the accuracy of a stage's most accurate variant that is not retired; 0 for a stage without.
func (s *Spec) BestOfStage(st StageID) float64 {
	best := 0.0
	for _, v := range s.Stages[st].Variants {
		if x := &s.Variants[v]; !x.Retired {
			best = max(best, x.Accuracy)
		}
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
	return max(app.Floor, s.BestOfStage(st)*part*(1-targetTolerance))
}

// targetTolerance keeps a target that is met exactly from being missed by rounding.
const targetTolerance = 1e-9
