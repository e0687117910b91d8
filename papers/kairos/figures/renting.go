package kairos

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// allocation is how long machines take from the request for a plan on: tens of seconds (§5.2).
const allocation = 30 * time.Second

// phase is from when on queries have which sizes.
type phase struct {
	mix  serving.Mix
	from time.Duration
}

// renting returns the case of a system that rents machines as it plans them, under the budget, for so long. Queries
// come by chance at a rate in queries/s, with the sizes of the phases, which ascend.
func (s *deployment) renting(system string, span time.Duration, rate float64, phases []phase) (*experiment.Case,
	error) {
	spec := s.affordable(budget)
	spec.DeviceTypes = slices.Clone(spec.DeviceTypes)
	for d := range spec.DeviceTypes {
		spec.DeviceTypes[d].Tenure = serving.Rented
	}
	var drawn []workload.Sizes
	var rates []*workload.Rate
	for k, p := range phases {
		x, err := workload.FromMix(p.mix)
		if err != nil {
			return nil, err
		}
		points := []workload.Point{{}, {At: p.from.Seconds(), Rate: rate}}
		if p.from == 0 {
			points = []workload.Point{{Rate: rate}}
		}
		if k+1 < len(phases) {
			points = append(points, workload.Point{At: phases[k+1].from.Seconds()})
		}
		r, err := workload.NewRate(points, false)
		if err != nil {
			return nil, err
		}
		drawn, rates = append(drawn, x), append(rates, r)
	}
	x := reproduce.System(system)
	x.Options.Renting.Budget = budget
	return &experiment.Case{
		Env: &experiment.Environment{
			Spec: spec, Beliefs: s.beliefs,
			Apps:  []report.AppInfo{{Name: s.model, BestAccuracy: 1, SLO: spec.Apps[0].SLO}},
			Truth: func(r *rand.Rand) (truth.Model, error) { return s.truth.WithRand(r), nil },
		},
		System: x, Span: span, FirstRates: []float64{rate}, PlanDelay: allocation,
		Source: func(seed uint64) workload.Source {
			var all []workload.Source
			for k := range phases {
				all = append(all, poisson.source(rates[k], drawn[k], uint64(len(phases))*seed+uint64(k)))
			}
			return workload.Limit(workload.Merge(all...), serving.Time(span), 1<<40)
		},
	}, nil
}

// lateShare is the share of the queries from one time to another that missed the objective, in per cent.
func lateShare(r *report.Report, from, to time.Duration) float64 {
	late, all := int64(0), int64(0)
	for _, b := range r.Series {
		if b.AtS >= from.Seconds() && b.AtS < to.Seconds() {
			late += b.Violations()
			all += b.Served + b.Dropped + b.Refused + b.Failed
		}
	}
	return 100 * float64(late) / float64(max(all, 1))
}
