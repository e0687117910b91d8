package loadadaptive

import (
	"context"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/profile"
)

// AllVariants loads every variant on every worker. It is for batchers that choose the variant without a policy.
type AllVariants struct {
	Profile profile.Profile
}

// Name implements plan.Planner.
func (AllVariants) Name() string { return "allvariants" }

// Provides implements plan.Planner.
func (AllVariants) Provides() plan.Sections { return plan.Shares | plan.Limits }

// Plan implements plan.Planner. The forecast has no accuracy.
func (a AllVariants) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	p := Planner{Profile: a.Profile, Rule: hostOnly{}}
	out, err := p.Plan(ctx, r)
	if out != nil {
		out.Planner, out.Policies, out.Forecast.Accuracy = a.Name(), nil, 0
	}
	return out, err
}

// hostOnly lets a Planner load variants and compute capacities. Its policies are discarded.
type hostOnly struct{ Target }

func (hostOnly) Name() string { return AllVariants{}.Name() }

func (hostOnly) choose(s *stage, _ float64) choice {
	at := s.fastest()
	return choice{variant: at, limits: s.variants[at].ownLimits()}
}
