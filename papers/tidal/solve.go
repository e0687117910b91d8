package tidal

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
)

// residualTolerance is the relative difference at which the assumed residual time agrees with the resulting one.
const residualTolerance = 0.02

// maxPenalty is the highest penalty of a late query, in accuracies of a perfect one: a higher one changes nothing.
const maxPenalty = 64

// Solve returns the value function of the pool, and whether it keeps LateShare; nil when no batch can be in time. near
// is the value function of a rate nearby, whose residual time the search starts from; nil for none.
//
// Two inputs of the process depend on its solution. The residual time of a busy worker's batch follows from the mix of
// batches, so it is iterated until it agrees. The penalty of a late query is a Lagrange multiplier: it is raised until
// no more than LateShare are late. At a rate beyond the pool's capacity no penalty is high enough.
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

// valueFunction returns the solution as a plan holds it.
func (x *process) valueFunction() *plan.ValueFunction {
	inTime := (x.gain + x.latePenalty*x.lateShare) / (1 - x.lateShare)
	return &plan.ValueFunction{
		Rate: x.pool.Rate, Residual: time.Duration(x.residual * float64(time.Second)), Gain: x.gain,
		LatePenalty: x.latePenalty,
		Value:       x.value, Zero: x.zero, PerQuery: 1 / x.queriesPerStep,
		Promise: plan.Promise{
			Accuracy: inTime, Violation: x.lateShare, Utilization: x.workerTime * x.pool.Rate / float64(x.pool.Workers),
		},
	}
}
