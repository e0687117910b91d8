package ramsis

import (
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving/profile"
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
	w, err := reproduce.NewEnvironment(spec, m, profile.P95, truth.Exact)
	if err == nil {
		w.Solver = solver
	}
	return w, err
}
