package systems

import (
	"github.com/sluice-serving/sluice/papers/infaas"
	"github.com/sluice-serving/sluice/policy/plan"
)

// INFaaS (ATC 2021) with accuracy in place of cost (Proteus §6.1.1). The placement changes greedily as queries arrive,
// so that it follows the demand at once. No program can be solved that often.
var infaasSystems = []System{
	{
		Name:   "infaas-accuracy",
		Doc:    "changes variants and places greedily, as queries arrive",
		Source: "INFaaS, ATC 2021; Proteus §6.1.1", Planner: "infaas", Router: "weighted", Batcher: "adaptive",
		Scaler: "arrivals",
	},
}

func newInfaas(w PlannerInputs, o Options) (plan.Planner, error) {
	p := &o.Planning
	return &infaas.Planner{
		Profile: w.Profile, Options: infaas.Options{
			Headroom: p.Headroom, Batches: w.Batches, Oddities: o.Release, Share: true,
		},
	}, nil
}
