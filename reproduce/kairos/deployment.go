package kairos

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/measure/report"
	planner "github.com/sluice-serving/sluice/planner/kairos"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/sim/truth"
)

// setup is what the experiments differ in besides pools and systems.
type setup struct {
	model string
	sizes sizes
	qos   float64 // of Table 3's, 1 for as it is
	noise float64 // deviation of latencies from what is predicted, relative, besides what was measured
}

// deployment is a model in a setup: what is the same in every pool.
type deployment struct {
	setup
	spec    serving.Spec // without workers
	beliefs *profile.Table
	truth   *truth.Table
	market  *planner.Market
	oracle  func() (*oraclePools, error) // on the best pool for it, found once
}

// newDeployment reads a model. Predictions are the measured means; what happens has the measured deviation too. A query
// runs alone and is never dropped, as in the authors' code: what comes late still takes a machine's time, and counts as
// violated.
func newDeployment(s setup) (*deployment, error) {
	at := slices.IndexFunc(models, func(m model) bool { return m.name == s.model })
	if at < 0 {
		return nil, fmt.Errorf("kairos: there is no model %q", s.model)
	}
	mix, err := s.sizes.mix()
	if err != nil {
		return nil, err
	}
	out := &deployment{setup: s, spec: serving.Spec{
		DeviceTypes: machineTypes,
		Apps: []serving.App{{
			Name: s.model, SLO: serving.SLO{
				Latency: time.Duration(s.qos * float64(models[at].qos)), Percentile: 99,
			}, Late: serving.ServeLate, Weight: 1,
			Mix: mix, QueueLimit: 1 << 30, Stages: []serving.StageID{0},
		}},
		Stages:   []serving.Stage{{Name: s.model, Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: s.model, Accuracy: 1, MaxBatch: maxItems}},
	}}
	m, err := readLatencies(s.model)
	if err != nil {
		return nil, err
	}
	if out.beliefs, err = profile.NewTable(&out.spec, m, profile.Mean); err != nil {
		return nil, err
	}
	for i := range m.Latency {
		p := &m.Latency[i]
		p.StdDev = time.Duration(math.Hypot(float64(p.StdDev), s.noise*float64(p.Mean)))
	}
	if out.truth, err = truth.NewTable(&out.spec, m, truth.Lognormal, nil); err != nil {
		return nil, err
	}
	out.market, err = planner.NewMarket(out.beliefs, &out.spec, 0, &mix, nil, out.spec.Apps[0].SLO.Latency)
	out.oracle = sync.OnceValues(out.findOracle)
	return out, err
}

// onPool is the service on a pool, with the plan that every machine serves queries of every size.
func (s *deployment) onPool(p pool) (*experiment.Environment, *plan.Plan, error) {
	w := experiment.Environment{
		Spec: &s.spec, Beliefs: s.beliefs, Apps: []report.AppInfo{
			{Name: s.model, BestAccuracy: 1, SLO: s.spec.Apps[0].SLO},
		},
		Truth: func(r *rand.Rand) (truth.Model, error) { return s.truth.WithRand(r), nil },
	}
	out, initial, err := w.OnPool(s.market, p.counts(), 0, violationLimit)
	if err != nil {
		return nil, nil, err
	}
	initial.Prefer = nil
	for t := range machineTypes { // Ribbon's queue prefers the base type (§7), the others in the order of Table 4
		initial.Prefer = append(initial.Prefer, serving.DeviceTypeID(t))
	}
	return out, initial, nil
}
