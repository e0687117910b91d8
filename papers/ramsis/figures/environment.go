package ramsis

import (
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/sim/truth"
)

// setup is how the experiments of §7 differ, besides systems and loads.
type setup struct {
	task     string // image or text
	slo      time.Duration
	workers  int
	floor    float64  // accuracy that the app asks for; 0 for none
	modelSet modelSet // models to choose from
}

// newEnvironment returns the environment of a setup. Every batch takes the profiled 95th percentile, as planners
// believe and as in the authors' simulator (§7.3.1). Late queries are served (§4.3.1).
func newEnvironment(solver milp.Solver, s setup) (*experiment.Environment, error) {
	spec, m, err := newSpec(s)
	if err != nil {
		return nil, err
	}
	beliefs, err := profile.NewTable(spec, m, profile.P95)
	if err != nil {
		return nil, err
	}
	w := &experiment.Environment{Spec: spec, Beliefs: beliefs, Solver: solver}
	w.Truth = func(r *rand.Rand) (truth.Model, error) { return truth.NewTable(spec, m, truth.Exact, r) }
	best := 0.0
	for _, v := range spec.Variants {
		best = max(best, v.Accuracy)
	}
	w.Apps = []report.AppInfo{{Name: s.task, BestAccuracy: best, SLO: spec.Apps[0].SLO}}
	return w, nil
}
