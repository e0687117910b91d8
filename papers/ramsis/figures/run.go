package ramsis

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// comparedSystems are the systems that figures compare.
func comparedSystems() []systems.System {
	return reproduce.Systems("ramsis", "tidal", "sluice", "jellyfish+", "modelswitching", "greedy")
}

// job is a system in an environment under a load.
type job struct {
	experiment.Case
	load *load

	once    sync.Once
	initial *plan.Plan
	failed  error
}

// authorsRates are the loads of the authors' policies, in queries/s (appendix A.4.2).
var authorsRates = []float64{200, 400, 600, 800, 1000, 1200, 1400, 1600, 1800, 2000, 2200, 2400, 2600, 2800, 3000, 3200,
	3400, 3600, 3800, 4000}

// newJob prepares a system. Where the load is known, the system has only the policy for that load. Otherwise
// ModelSwitching profiles at the loads of the authors' policies (appendix A.4.2), and on a load with a grid all systems
// do.
func newJob(w *experiment.Environment, s systems.System, l *load) *job {
	p := &s.Options.Policies
	switch {
	case l.known > 0:
		p.Known = true
	case l.grid || s.Planner == "modelswitching":
		p.Rates = l.policyRates
	}
	j := &job{load: l}
	j.Case = experiment.Case{Env: w, System: s, Span: l.span, Source: func(seed uint64) workload.Source {
		return l.source(seed)
	}, FirstRates: []float64{l.known}, PlanDelay: l.planTime}
	if l.known > 0 {
		j.Scaler = scale.Fixed{} // the load never changes
	}
	j.Record = report.Options{Exact: 1}
	return j
}

// plan makes the job's plan, once for all seeds.
func (j *job) plan(ctx context.Context) (*plan.Plan, error) {
	j.once.Do(func() {
		p, err := j.System.NewPlanner(j.Env.Known())
		if err == nil {
			j.initial, err = p.Plan(ctx, plan.Request{Spec: j.Env.Spec, Rates: j.FirstRates})
		}
		j.failed = err
	})
	return j.initial, j.failed
}

// result is the result of a job with one seed.
type result struct {
	accuracy   float64 // per satisfied query, per cent; NaN when there is none
	violations float64 // per cent of the queries
	queries    int64
	promise    *plan.Promise // of the policy for a known load; nil when there is none
	late       time.Duration // mean time by which batches took longer than profiled, on the real clock
}

func (j *job) simulate(ctx context.Context, seed uint64) (*result, error) {
	initial, err := j.plan(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", j.System.Name, err)
	}
	c := j.Case
	c.Initial = initial
	r, err := c.Run(ctx, seed)
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", j.System.Name, j.load.name, err)
	}
	all := &r.Report.Overall
	out := &result{accuracy: math.NaN(), violations: 100 * all.ViolationRatio, queries: all.Offered}
	if all.SatisfiedAccuracy != nil {
		out.accuracy = 100 * *all.SatisfiedAccuracy
	}
	if j.load.known > 0 && len(initial.Policies) > 0 {
		out.promise = &initial.Policies[0].At(j.load.known).Promise
	}
	return out, nil
}
