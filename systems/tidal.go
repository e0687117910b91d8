package systems

import (
	"github.com/sluice-serving/sluice/planner/tidal"
	"github.com/sluice-serving/sluice/policy/plan"
)

// Ours, for the setting of RAMSIS: what it leaves open is the objective by query rather than by decision, and pooling.
var tidalSystems = []System{
	{
		Name: "tidal",
		Doc: "one queue for all workers; batches by their accuracy and by what they leave the pool worth, late " +
			"ones as rare as asked",
		Source: "ours", Planner: "tidal", Router: "tidal", Batcher: "asrouted", Scaler: "fixed",
	},
}

func newTidal(w World, o Options) (plan.Planner, error) {
	return &tidal.Planner{Profile: w.Profile, Options: tidal.Options{SingleRate: o.Policies.Alone}}, nil
}
