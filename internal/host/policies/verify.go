package policies

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/student"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim"
	"github.com/sluice-serving/sluice/sim/truth"
)

// Verification are the options of Sets.Verify.
type Verification struct {
	Rates     []float64 // of the policies to verify; nil for all
	Seeds     int       // simulations of every policy, at least 2
	Queries   int       // in each
	Parallel  int       // simulations at once
	Measured  bool      // batch times scatter as measured; otherwise they are those of the profile
	Switching bool      // the whole set is in force and the policy changes with the load, as in a server
}

// Verified compares the promise of a policy with its observed behaviour.
type Verified struct {
	App         string  `json:"app"`
	Rate        float64 `json:"rate"`
	Promised    Promise `json:"promised"`
	Observed    Promise `json:"observed"` // means over the seeds
	Satisfiable bool    `json:"satisfiable"`
	Verdict     string  `json:"verdict"` // Kept or Broken
	// AccuracyAtMost is above the true accuracy, ViolationAtLeast below the true share of violations, with 99 %
	// confidence each.
	AccuracyAtMost   float64 `json:"accuracy_at_most"`
	ViolationAtLeast float64 `json:"violation_ratio_at_least"`

	app      serving.AppID
	policies []plan.Policies
	runs     []Promise
}

// Promise is an accuracy and a share of violations.
type Promise struct {
	Accuracy  float64 `json:"accuracy"`
	Violation float64 `json:"violation_ratio"` // negative if nothing is promised
}

// Verdicts. A promise is broken when the observed values are significantly worse, by a one-sided t-test over the seeds
// at 1 %.
const (
	Kept   = "kept"
	Broken = "broken"
)

// Verify simulates every policy under arrivals at its own rate and compares the results with its promise. The outcomes
// are ordered by app, then by rate.
func (s *Sets) Verify(ctx context.Context, v Verification) ([]Verified, error) {
	rows := s.rows(v)
	progress := s.profiled.Options().Progress
	var mu sync.Mutex
	err := experiment.Sweep(ctx, len(rows)*v.Seeds, v.Parallel, func(ended, of int) {
		mu.Lock()
		defer mu.Unlock()
		progress(float64(ended)/float64(of), "simulating policies")
	}, func(_ context.Context, i int) (err error) {
		r := &rows[i/v.Seeds]
		r.runs[i%v.Seeds], err = s.simulate(v, r, uint64(i)+1)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range rows {
		rows[i].judge()
	}
	return rows, nil
}

// rows lists the simulations: each app at each rate for which one of its types of worker has a policy.
func (s *Sets) rows(v Verification) (out []Verified) {
	for a := range s.profiled.Spec().Apps {
		app := serving.AppID(a)
		var rates []float64
		for i := range s.plan.Policies {
			if set := &s.plan.Policies[i]; s.app(set) == app {
				for k := range set.ByRate {
					rates = append(rates, set.ByRate[k].Rate)
				}
			}
		}
		slices.Sort(rates)
		for _, rate := range slices.Compact(rates) {
			if v.Rates == nil || slices.Contains(v.Rates, rate) {
				out = append(out, s.row(v, app, rate))
			}
		}
	}
	return out
}

// row returns a policy that is not simulated yet, with the sets that are in force then.
func (s *Sets) row(v Verification, app serving.AppID, rate float64) Verified {
	spec := s.profiled.Spec()
	out := Verified{App: spec.Apps[app].Name, Rate: rate, app: app, runs: make([]Promise, v.Seeds)}
	for i := range s.plan.Policies {
		set := s.plan.Policies[i]
		if s.app(&set) == app && !v.Switching {
			set.ByRate = []plan.Policy{*set.At(rate)}
		}
		out.policies = append(out.policies, set)
	}
	x, _ := s.plan.Promised(spec, spec.Apps[app].Stages[0]).At(rate)
	out.Promised = Promise{x.Accuracy, x.Violation}
	out.Satisfiable = out.Promised.Violation >= 0 && out.Promised.Violation <= spec.Apps[app].SLO.Allowed()+1e-12
	return out
}

// simulate runs a policy once.
func (s *Sets) simulate(v Verification, r *Verified, seed uint64) (Promise, error) {
	p := s.profiled
	system := p.System()
	system.Scaler = "fixed" // another plan would have other policies
	e, err := system.Engine(p.Spec(), p.Latencies(), s.planner.Provides())
	if err != nil {
		return Promise{}, err
	}
	var machines truth.Model = profiledTimes{p.Latencies()}
	if v.Measured {
		if machines, err = truth.NewTable(p.Spec(), p.Measurements(), truth.Lognormal,
			workload.Rand(seed, "service times")); err != nil {
			return Promise{}, err
		}
	}
	load := workload.AppSpec{App: r.App, Rate: r.Rate}
	if shape := system.Options.Policies.Shape; shape > 0 {
		load.Process, load.Shape = "gamma", shape
	}
	spec := workload.Spec{Seed: seed, DurationS: float64(v.Queries) / r.Rate, Apps: []workload.AppSpec{load}}
	src, err := spec.Source(p.AppID)
	if err != nil {
		return Promise{}, err
	}
	recorder := report.NewRecorder(p.AppInfo(), report.Options{})
	initial := *s.plan
	initial.Policies = r.policies
	if _, err := sim.Run(sim.Config{
		Spec: p.Spec(), Engine: e, Truth: machines, Source: src, Initial: &initial, Warm: true, Recorder: recorder,
	}); err != nil {
		return Promise{}, fmt.Errorf("%s at %s: %w", r.App, quantity.Rate(r.Rate), err)
	}
	o := recorder.Report(report.Meta{Seed: seed, Duration: time.Duration(spec.DurationS * 1e9)}).Apps[r.app]
	out := Promise{Accuracy: math.NaN(), Violation: o.ViolationRatio}
	if o.EffectiveAccuracy != nil {
		out.Accuracy = *o.EffectiveAccuracy
	}
	return out, nil
}

// profiledTimes is a truth.Model with the latencies of a profile.
type profiledTimes struct{ profile.Profile }

// Draw implements truth.Model: nothing is random.
func (profiledTimes) Draw(serving.VariantID, serving.DeviceTypeID, int, int) float64 { return 0 }

// Service implements truth.Model.
func (b profiledTimes) Service(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int,
	_ float64) time.Duration {
	return b.Latency(v, d, items, concurrency)
}

// Load implements truth.Model.
func (b profiledTimes) Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	return b.Profile.Load(v, d)
}

// wronglyBroken is the probability that a promise that is just kept is called broken.
const wronglyBroken = 0.01

// judge sets the verdict from the observed and promised values.
func (r *Verified) judge() {
	var accuracies, violations []float64
	for _, x := range r.runs {
		if !math.IsNaN(x.Accuracy) {
			accuracies = append(accuracies, x.Accuracy)
		}
		violations = append(violations, x.Violation)
	}
	var margin float64
	r.Observed.Violation, margin = student.Margin(violations, wronglyBroken)
	r.ViolationAtLeast = max(r.Observed.Violation-margin, 0)
	if len(accuracies) > 0 { // otherwise nothing was served, and all queries are violations
		r.Observed.Accuracy, margin = student.Margin(accuracies, wronglyBroken)
	}
	r.AccuracyAtMost = r.Observed.Accuracy + margin
	r.Verdict = Kept
	if r.Promised.Violation >= 0 && r.ViolationAtLeast > r.Promised.Violation+1e-9 || len(accuracies) > 0 &&
		r.AccuracyAtMost < r.Promised.Accuracy-1e-9 {
		r.Verdict = Broken
	}
}
