package proteus

import (
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/sim/truth"
)

// setup is how an environment differs from the paper's cluster at an objective of 300 ms.
type setup struct {
	slos   []time.Duration // objectives by AppID; nil leaves 300 ms
	giveUp time.Duration   // late queries are served until this long after arrival; 0 drops them
	load   time.Duration   // time to load a variant
}

// newEnvironment returns the paper's cluster. Run times are always the measured median, as in the authors' simulator.
// Its results were within 0.12 % of the accuracy and 0.82 % of the throughput of their cluster (§6.2).
func newEnvironment(solver milp.Solver, s setup) (*experiment.Environment, error) {
	spec, m, err := readProfile(1)
	if err != nil {
		return nil, err
	}
	for a := range spec.Apps {
		if s.slos != nil {
			spec.Apps[a].SLO.Latency = s.slos[a]
		}
		if s.giveUp > 0 {
			spec.Apps[a].Late, spec.Apps[a].GiveUp = serving.ServeLate, s.giveUp
		}
	}
	if s.load > 0 {
		for v := range spec.Variants {
			for d := range spec.DeviceTypes {
				m.Load = append(m.Load, serving.LoadPoint{
					Variant: serving.VariantID(v), DeviceType: serving.DeviceTypeID(d), Load: s.load,
				})
			}
		}
	}
	w, err := reproduce.NewEnvironment(spec, m, profile.P50, truth.Exact)
	if err != nil {
		return nil, err
	}
	w.Solver, w.Batches = solver, batches
	for a := range w.Apps {
		// Accuracies are relative to the best of a family, also where the cluster does not have that variant.
		w.Apps[a].BestAccuracy = 1
	}
	return w, nil
}
