package loadadaptive

import "github.com/sluice-serving/sluice/policy/plan"

// Target is INFaaS (ATC 2021) for apps that name an accuracy: the fastest variant that reaches it, whatever the load
// (RAMSIS App. H). The accuracy is the app's target, or its floor where it has none or no variant in use reaches the
// target. Batches take at most half the objective, as in Jellyfish.
type Target struct{}

// Name implements Rule.
func (Target) Name() string { return "infaas-target" }

func (Target) rates(s *stage) []float64 {
	return []float64{s.capacity(&s.variants[s.fastestOf(s.target)], anyTime)}
}

func (Target) choose(s *stage, rate float64) choice {
	at := s.fastestOf(s.target)
	v := &s.variants[at]
	return choice{
		variant: at, limits: v.largestBatches(s.budget/2, 0), promise: plan.Promise{
			Accuracy: v.accuracy, Violation: -1, Utilization: min(1, rate/s.capacity(v, anyTime)),
		},
	}
}
