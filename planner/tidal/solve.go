package tidal

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
)

// settled is by how much the time left of busy workers may differ from what the process was made with.
const residualTolerance = 0.02

// dearest is the highest price of a late query, in accuracies of a perfect one: beyond it nothing changes any more.
const maxPenalty = 64

// Price returns what the pool's positions are worth, and whether no more queries are late than the pool allows; nil
// when no batch can be in time at all.
//
// Two things about the best policy are needed before it is known. How much a busy worker has left of its batch follows
// from the mix of batches, so it is put in again until it agrees. The price of a late query is raised until no more of
// them are late than allowed (a Lagrange multiplier): at a rate beyond what the workers carry it never is.
//
// near is the price of a rate nearby, from which the time left is taken to begin with; nil for none.
func (p *Pool) Solve(near *plan.ValueFunction) (price *plan.ValueFunction, kept bool) {
	if len(p.actions()) == 0 {
		return nil, false
	}
	rest := p.SLO.Seconds() / 2.5
	if near != nil {
		rest = near.Residual.Seconds()
	}
	var x *process
	for late := 1.0; late <= maxPenalty; late *= 4 {
		for range 4 {
			before := x
			if x = newProcess(p, rest, late); before != nil {
				x.startFrom(before)
			}
			x.policyIteration()
			if math.Abs(x.meanResidual-rest) <= residualTolerance*rest {
				break
			}
			rest = x.meanResidual
		}
		if x.lateShare <= p.LateShare {
			return x.valueFunction(), true
		}
	}
	return x.valueFunction(), false
}

func (x *process) valueFunction() *plan.ValueFunction {
	inTime := (x.gain + x.latePenalty*x.lateShare) / (1 - x.lateShare)
	return &plan.ValueFunction{
		Rate: x.pool.Rate, Residual: time.Duration(x.residual * float64(time.Second)), Gain: x.gain, LatePenalty: x.latePenalty,
		Value: x.value, Zero: x.zero, PerQuery: 1 / x.queriesPerStep,
		Promise: plan.Promise{
			Accuracy: inTime, Violation: x.lateShare, Utilization: x.workerTime * x.pool.Rate / float64(x.pool.Workers),
		},
	}
}
