package reproduce

import (
	"math/rand/v2"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/sim/truth"
)

// NewEnvironment returns machines that take the measured times, with the given noise. Planners believe a statistic of
// the same measurements. It has no solver.
func NewEnvironment(spec *serving.Spec, m serving.Measurements, believed profile.Statistic, noise truth.Noise) (
	*experiment.Environment, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	beliefs, err := profile.NewTable(spec, m, believed)
	if err != nil {
		return nil, err
	}
	machines, err := truth.NewTable(spec, m, noise, nil)
	if err != nil {
		return nil, err
	}
	out := &experiment.Environment{Spec: spec, Beliefs: beliefs}
	out.Truth = func(r *rand.Rand) (truth.Model, error) { return machines.WithRand(r), nil }
	for a := range spec.Apps {
		out.Apps = append(out.Apps, report.AppInfo{
			Name: spec.Apps[a].Name, SLO: spec.Apps[a].SLO, BestAccuracy: spec.BestAccuracy(serving.AppID(a)),
		})
	}
	return out, nil
}
