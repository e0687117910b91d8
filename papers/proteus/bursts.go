package proteus

import (
	"context"
	"math"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

const (
	// burstDeviations is how many deviations of what arrives within an objective clumps get beyond what Poisson
	// arrivals have.
	burstDeviations = 1.5
	// mostLift bounds the lift of an app that is hardly called.
	mostLift = 4
)

// lift returns by what part of an app's demand its clumps ask for more head-room (ours). Within the objective T, at a
// rate of r and with a dispersion of I, the number of arrivals has the mean rT and the deviation sqrt(I rT). Plans for
// Poisson arrivals are good enough as they are, so only the deviation beyond that of I = 1 counts.
func lift(r plan.Request, a serving.AppID) float64 {
	rate := capacity.MinRate
	if int(a) < len(r.Rates) {
		rate = max(rate, r.Rates[a])
	}
	mean := rate * r.Spec.Apps[a].SLO.Latency.Seconds()
	return min(burstDeviations*(math.Sqrt(r.Dispersion(a))-1)/math.Sqrt(mean), mostLift)
}

// liftSteps are the parts of the lift that are tried.
var liftSteps = []float64{1, 0.8, 0.6, 0.4, 0.2}

// liftDemand raises the demand of all stages by the largest part of their lifts that the fleet carries.
func (p *Planner) liftDemand(ctx context.Context, m *problem) error {
	most := 0.0
	for s := range m.stages {
		most = max(most, m.stages[s].lift)
	}
	if most == 0 {
		return nil
	}
	for _, m.lifted = range liftSteps {
		m.scale(1)
		f, err := p.search(ctx, m, nil, true)
		if err != nil {
			return err
		}
		if !m.sheds(f.allocation) {
			return nil
		}
	}
	m.lifted = 0
	m.scale(1)
	return nil
}
