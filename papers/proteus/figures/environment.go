package proteus

import (
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/report"
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
	beliefs, err := profile.NewTable(spec, m, profile.P50)
	if err != nil {
		return nil, err
	}
	w := &experiment.Environment{Spec: spec, Beliefs: beliefs, Solver: solver, Batches: batches}
	w.Truth = func(r *rand.Rand) (truth.Model, error) { return truth.NewTable(spec, m, truth.Exact, r) }
	for a := range spec.Apps {
		// The profile has relative accuracies, so the best is 1.
		w.Apps = append(w.Apps, report.AppInfo{Name: spec.Apps[a].Name, BestAccuracy: 1, SLO: spec.Apps[a].SLO})
	}
	return w, nil
}
