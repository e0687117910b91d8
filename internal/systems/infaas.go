package systems

import (
	"cmp"
	"time"

	"github.com/sluice-serving/sluice/papers/infaas"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
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

var infaasPlanners = plannerTable{
	{
		"infaas", "chooses each worker's variant greedily, beginning with what runs", "INFaaS, ATC 2021, §4.2",
		newInfaas,
	},
}

var infaasScalers = scalerTable{
	{
		"arrivals", "plans again every second, and at once when the demand bursts or a worker is lost or back",
		"INFaaS, ATC 2021; Proteus §6.1.1",
		newArrivals,
	},
}

// arrivalsInterval is how often plans are made as queries arrive. No program can be solved more often.
const arrivalsInterval = time.Second

// newArrivals plans every second and, when the demand exceeds the plan, as soon as arrivals show it.
func newArrivals(o Options) scale.Scaler {
	return scale.Replan{
		Interval: cmp.Or(o.Replan, arrivalsInterval), Bursts: true, Pause: 100 * time.Millisecond, Plain: true,
	}
}

func newInfaas(w PlannerInputs, o Options) (plan.Planner, error) {
	p := &o.Planning
	return &infaas.Planner{
		Profile: w.Profile, Options: infaas.Options{
			Headroom: p.Headroom, Batches: w.Batches, Oddities: o.Release, Share: true,
		},
	}, nil
}
