package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/algo/student"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/sim"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/sim/truth"
)

func policyVerifyCommand() command {
	return command{
		name: "policy verify", summary: "what policies promise beside what they do in the simulator",
		usage: "-f sluice.yaml [--rates 50,100] [--seeds 5]",
		about: `
Simulates every policy under arrivals at its own rate, several times, and prints what it promised beside what
was observed. A promise is broken when the accuracy is lower, or the share of violations higher, than promised,
by more than chance explains: by a one-sided t-test over the seeds at 1 %. Batches take as long as planning
believes (95th percentiles), unless --measured has them scatter as they were measured. With --switching the
whole set is in force, as in a server, and the policy follows the load of the last half second.

A load is satisfiable when its policy promises no more violations than the app's objective allows (1 -
percentile). The exit status is 5 when a promise is broken at a satisfiable load.`,
		examples: "sluice policy verify -f sluice.yaml\nsluice policy verify -f sluice.yaml --rates 50,100 --seeds " +
			"20\nsluice policy verify -f sluice.yaml --measured --json",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			p := declarePolicy(fs,
				"verify the policies for these `rates` in queries/s only, separated by commas; made if need be")
			v := verification{}
			fs.IntVar(&v.seeds, "seeds", 5, "simulations of every policy, 2 to 100")
			fs.IntVar(&v.queries, "queries", 10_000, "queries in each")
			fs.BoolVar(&v.measured, "measured", false, "batches scatter as they were measured")
			fs.BoolVar(&v.switching, "switching", false, "the policy follows the load, as in a server")
			fs.IntVar(&v.parallel, "parallel", runtime.NumCPU(), "runs at once")
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return exit(ExitUsage, "%q is not understood", args)
				}
				if v.seeds < 2 || v.seeds > 100 || v.queries < 100 || v.parallel < 1 {
					return exit(ExitUsage,
						"--seeds is %d, --queries %d and --parallel %d, want 2 to 100, at least 100 and at least 1",
						v.seeds, v.queries, v.parallel)
				}
				var only []float64
				if *p.rates != "" {
					var err error
					if only, err = parseRates(*p.rates); err != nil {
						return err
					}
					*p.rates = joinRates(only)
				}
				var err error
				if v.sets, err = p.open(e); err != nil {
					return err
				}
				v.list(only)
				if err := v.run(e); err != nil {
					return err
				}
				if *p.asJSON {
					err = writeJSON(e.Stdout, v.rows)
				} else {
					err = v.print(e.Stdout)
				}
				if err != nil {
					return err
				}
				broken := 0
				for _, r := range v.rows {
					if r.Verdict == verdictBroken && r.Satisfiable {
						broken++
					}
				}
				if broken > 0 {
					return exit(ExitShortOf, "%d of %d promises are broken at loads that can be satisfied", broken,
						len(v.rows))
				}
				return nil
			}
		},
	}
}

// verification is a set of policies to simulate.
type verification struct {
	sets                     *policySets
	seeds, queries, parallel int
	measured, switching      bool
	rows                     []verifiedRow
}

// verifiedRow is what a policy promised and did.
type verifiedRow struct {
	App         string   `json:"app"`
	Rate        float64  `json:"rate"` // queries/s
	Promised    promised `json:"promised"`
	Observed    promised `json:"observed"` // means over the seeds
	Satisfiable bool     `json:"satisfiable"`
	Verdict     string   `json:"verdict"`
	// Bounds are what the observed values are believed to reach at least (accuracy) or at most (violations), with 99 %
	// confidence each.
	AccuracyAtMost   float64 `json:"accuracy_at_most"`
	ViolationAtLeast float64 `json:"violation_ratio_at_least"`

	app      serving.AppID
	policies []plan.Policies
	runs     []promised
}

type promised struct {
	Accuracy  float64 `json:"accuracy"`
	Violation float64 `json:"violation_ratio"`
}

const (
	verdictKept   = "kept"
	verdictBroken = "broken"
)

// list says what is to be simulated: each app at each rate that any of its types of worker has a policy for.
func (v *verification) list(only []float64) {
	s := v.sets
	for a := range s.world.Spec.Apps {
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
			if only != nil && !slices.Contains(only, rate) {
				continue
			}
			v.rows = append(v.rows, v.row(app, rate))
		}
	}
}

func (v *verification) row(app serving.AppID, rate float64) verifiedRow {
	s := v.sets
	spec := s.world.Spec
	out := verifiedRow{App: spec.Apps[app].Name, Rate: rate, app: app, runs: make([]promised, v.seeds)}
	for i := range s.plan.Policies {
		set := s.plan.Policies[i]
		if s.app(&set) == app {
			if !v.switching {
				set.ByRate = []plan.Policy{*set.At(rate)}
			}
		}
		out.policies = append(out.policies, set)
	}
	x, _ := s.plan.Promised(spec, spec.Apps[app].Stages[0]).At(rate)
	out.Promised = promised{x.Accuracy, x.Violation}
	out.Satisfiable = out.Promised.Violation >= 0 && out.Promised.Violation <= 1-spec.Apps[app].SLO.Percentile/100+1e-12
	return out
}

// run simulates everything and comes to verdicts.
func (v *verification) run(e *Env) error {
	bar := newProgress(e)
	defer bar.done()
	var mu sync.Mutex
	err := experiment.Sweep(e.Context, len(v.rows)*v.seeds, v.parallel, func(ended, of int) {
		mu.Lock()
		defer mu.Unlock()
		bar.show(float64(ended)/float64(of), "simulating policies")
	}, func(_ context.Context, i int) (err error) {
		r := &v.rows[i/v.seeds]
		r.runs[i%v.seeds], err = v.simulate(r, uint64(i)+1)
		return err
	})
	if err != nil {
		return err
	}
	for i := range v.rows {
		v.rows[i].judge()
	}
	return nil
}

// simulate runs a policy once.
func (v *verification) simulate(r *verifiedRow, seed uint64) (promised, error) {
	w := v.sets.world
	system := w.system
	system.Scaler = "fixed" // another plan would bring other policies
	en, err := system.Engine(w.Spec, w.profile, w.planner.Provides())
	if err != nil {
		return promised{}, err
	}
	var machines truth.Model = believedTimes{w.profile}
	if v.measured {
		if machines, err = truth.NewTable(w.Spec, w.measurements, truth.Lognormal,
			workload.Rand(seed, "service times")); err != nil {
			return promised{}, err
		}
	}
	load := workload.AppSpec{App: r.App, Rate: r.Rate}
	if shape := system.Options.Policies.Shape; shape > 0 {
		load.Process, load.Shape = "gamma", shape
	}
	spec := workload.Spec{Seed: seed, DurationS: float64(v.queries) / r.Rate, Apps: []workload.AppSpec{load}}
	src, err := spec.Source(w.resolve)
	if err != nil {
		return promised{}, err
	}
	recorder := report.NewRecorder(w.appInfos(), report.Options{})
	initial := *v.sets.plan
	initial.Policies = r.policies
	if _, err := sim.Run(sim.Config{
		Spec: w.Spec, Engine: en, Truth: machines, Source: src, Initial: &initial, Warm: true, Recorder: recorder,
	}); err != nil {
		return promised{}, fmt.Errorf("%s at %s: %w", r.App, rateText(r.Rate), err)
	}
	o := recorder.Report(report.Meta{Seed: seed, Duration: time.Duration(spec.DurationS * 1e9)}).Apps[r.app]
	out := promised{Accuracy: math.NaN(), Violation: o.ViolationRatio}
	if o.EffectiveAccuracy != nil {
		out.Accuracy = *o.EffectiveAccuracy
	}
	return out, nil
}

// believedTimes are machines that take what the profile believes.
type believedTimes struct{ profile.Profile }

// Service implements truth.Model.
func (b believedTimes) Service(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	return b.Latency(v, d, items, concurrency)
}

// Load implements truth.Model.
func (b believedTimes) Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	return b.Profile.Load(v, d)
}

// verifiedAt is the chance of calling a promise broken that is just kept.
const verifiedAt = 0.01

// judge compares what was observed with what was promised.
func (r *verifiedRow) judge() {
	var accuracies, violations []float64
	for _, x := range r.runs {
		if !math.IsNaN(x.Accuracy) {
			accuracies = append(accuracies, x.Accuracy)
		}
		violations = append(violations, x.Violation)
	}
	var margin float64
	r.Observed.Violation, margin = student.Margin(violations, verifiedAt)
	r.ViolationAtLeast = max(r.Observed.Violation-margin, 0)
	if len(accuracies) > 0 { // else nothing was served, which violations tell
		r.Observed.Accuracy, margin = student.Margin(accuracies, verifiedAt)
	}
	r.AccuracyAtMost = r.Observed.Accuracy + margin
	r.Verdict = verdictKept
	if r.Promised.Violation >= 0 && r.ViolationAtLeast > r.Promised.Violation+1e-9 || len(accuracies) > 0 &&
		r.AccuracyAtMost < r.Promised.Accuracy-1e-9 {
		r.Verdict = verdictBroken
	}
}

func (v *verification) print(w io.Writer) error {
	how := "batches take as long as planning believes"
	if v.measured {
		how = "batches scatter as measured"
	}
	if v.switching {
		how += ", the policy follows the load"
	}
	fmt.Fprintf(w, "system %s, %d simulations of %d queries for each policy; %s\n", v.sets.world.system.Name, v.seeds,
		v.queries, how)
	kept, beyond := 0, 0
	for from := 0; from < len(v.rows); {
		rows := [][]string{{"RATE", "ACCURACY PROMISED", "OBSERVED", "VIOLATIONS PROMISED", "OBSERVED", "VERDICT"}}
		to := from
		for ; to < len(v.rows) && v.rows[to].app == v.rows[from].app; to++ {
			r := &v.rows[to]
			verdict := r.Verdict
			if verdict == verdictKept {
				kept++
			}
			if r.Promised.Violation < 0 {
				verdict += ", no promise of violations"
			} else if !r.Satisfiable {
				verdict += ", not satisfiable"
				beyond++
			}
			rows = append(rows, []string{
				rateText(r.Rate), accuracyText(r.Promised.Accuracy), accuracyText(r.Observed.Accuracy),
				shareText(r.Promised.Violation), shareText(r.Observed.Violation), verdict,
			})
		}
		fmt.Fprintf(w, "\napp %s\n\n", v.rows[from].App)
		if err := columns(w, "rrrrrl", rows); err != nil {
			return err
		}
		from = to
	}
	fmt.Fprintf(w, "\n%d of %d promises are kept; %d of the loads cannot be satisfied\n", kept, len(v.rows), beyond)
	return nil
}
