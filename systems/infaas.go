package systems

import (
	"time"

	"github.com/sluice-serving/sluice/planner/infaas"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
)

// INFaaS (ATC 2021) with accuracy in the place of cost (Proteus §6.1.1): the placement is changed greedily on the path
// of the queries, so that it follows the demand at once; no program could be solved that often.
var infaasSystems = []System{
	{
		Name: "infaas-accuracy", Doc: "changes variants and places greedily as queries arrive; adaptive batches",
		Source: "INFaaS, ATC 2021; Proteus §6.1.1", Planner: "infaas", Router: "weighted", Batcher: "adaptive",
		Scaler: "arrivals",
	},
}

func newInfaas(w World, o Options) (plan.Planner, error) {
	p := &o.Planning
	return &infaas.Planner{
		Profile: w.Profile, Options: infaas.Options{Headroom: p.Headroom, Batches: w.Batches, Oddities: p.Oddities},
	}, nil
}

// newArrivals plans every second and, when the demand exceeds the plan, as soon as the next arrivals show it.
func newArrivals(o Options) scale.Scaler {
	interval := o.Replan
	if interval == 0 {
		interval = time.Second
	}
	return scale.Replan{Interval: interval, Bursts: true, Pause: 100 * time.Millisecond, Plain: true}
}
