package kairos

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	planner "github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/sim/truth"
)

// setup is the part of an experiment that stays the same for all pools and systems.
type setup struct {
	model string
	sizes sizes
	qos   float64 // multiple of the QoS target of Table 3
	noise float64 // relative deviation of latencies from their prediction, added to the measured one
}

// deployment is a model in a setup: all that is the same on every pool.
type deployment struct {
	setup
	spec    serving.Spec // without workers
	beliefs *profile.Table
	careful *profile.Table // what the default system believes: 95th percentiles, as where it serves
	// measured is what beliefs were made of, without noise that is added
	measured serving.Measurements
	truth    *truth.Table
	market   *planner.Market
	oracle   func() (*oraclePools, error) // throughput of the oracle on every pool, computed once
}

// newDeployment prepares a model in a setup. Planners believe the measured means; simulated latencies also have the
// measured deviation. The paper's runs learn latencies online (§5.1). As in the authors' code, a query runs alone and
// is never dropped: a late one still takes a machine's time, and counts as a violation.
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
	if out.careful, err = profile.NewTable(&out.spec, withPercentiles(m), profile.P95); err != nil {
		return nil, err
	}
	out.measured = serving.Measurements{Latency: slices.Clone(m.Latency)}
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

// onPool returns the environment with the machines of a pool, and the plan in which every machine serves queries of all
// sizes.
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
	for t := range machineTypes { // Ribbon's queue prefers the base type (§7), then the others in the order of Table 4.
		initial.Prefer = append(initial.Prefer, serving.DeviceTypeID(t))
	}
	return out, initial, nil
}

// deviations95 is how many standard deviations the 95th percentile of a normal distribution lies above its mean.
const deviations95 = 1.645

// withPercentiles returns measurements with 95th percentiles, which the authors did not publish.
func withPercentiles(m serving.Measurements) serving.Measurements {
	out := serving.Measurements{Latency: slices.Clone(m.Latency)}
	for i := range out.Latency {
		p := &out.Latency[i]
		p.P95 = p.Mean + time.Duration(deviations95*float64(p.StdDev))
	}
	return out
}
