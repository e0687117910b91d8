package experiment

import (
	"context"
	"slices"

	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// OnPool returns a copy of the environment whose workers are the machines of pool, and a plan in which each of them
// serves queries of all sizes with variant v. pool counts machines by index in m.Types. The plan's Prefer lists base
// types first. Its MarginalRates are a machine's value by the linear program in which the share late of the queries may
// miss the objective.
func (env *Environment) OnPool(m *kairos.Market, pool kairos.Pool, v serving.VariantID, late float64) (*Environment,
	*plan.Plan,
	error) {
	out := *env
	counts := make([]int, len(env.Spec.DeviceTypes))
	var prefer, others []serving.DeviceTypeID
	for t, n := range pool {
		d := m.Types[t].Device
		counts[d] += n
		if m.IsBase(t) {
			prefer = append(prefer, d)
		} else {
			others = append(others, d)
		}
	}
	out.Spec = env.Spec.WithWorkers(counts)
	variant := &out.Spec.Variants[v]
	var place []static.Instance
	for id := range out.Spec.Workers {
		place = append(place, static.Instance{
			Worker: serving.WorkerID(id), Stage: variant.Stage, Variants: []serving.VariantID{v},
			Limit: variant.MaxBatch,
		})
	}
	initial, err := (&static.Planner{
		Profile: out.Known().Profile, Instances: place,
	}).Plan(context.Background(), plan.Request{Spec: out.Spec})
	if err != nil {
		return nil, nil, err
	}
	initial.Prefer = slices.Concat(prefer, others)
	f, err := kairos.NewFluid(m, late)
	if err != nil {
		return nil, nil, err
	}
	initial.MarginalRates = make([][]float64, len(out.Spec.Stages))
	if worth := f.Solve(pool).MarginalRates; worth != nil {
		initial.MarginalRates[variant.Stage] = make([]float64, len(out.Spec.DeviceTypes))
		for t := range m.Types {
			initial.MarginalRates[variant.Stage][m.Types[t].Device] = worth[t]
		}
	}
	return &out, initial, nil
}
