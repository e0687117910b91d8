package infless

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/packing"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/infless/rules"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/sim/truth"
)

// contender is a system with its options, as one of those that a figure compares.
type contender struct {
	name, system string
	// offset is the factor on believed execution times: INFless adds a tenth to its predictions (§3.3). 0 means 1.
	offset float64
	// linger is how long instances stay after the load has fallen; 0 means the system's own time.
	linger time.Duration
	// percent allows only instances with this share of an accelerator; 0 allows all.
	percent int
	// instantStarts makes instances start in no time.
	instantStarts bool
	bound         batchRule
}

// batchRule says which configurations the linear program that bounds a system may use.
type batchRule uint8

const (
	halfObjective  batchRule = iota // batches of at most half the objective (Eq. 1)
	wholeObjective                  // batches of at most the objective
	singleQuery                     // one query at a time, on two threads and 10 % of an accelerator
)

const predictionOffset = 1.1

// baselines is how many of contenders are no form of INFless, and not ours.
const baselines = 4

// contenders are the systems of Figures 12, 15 and Table 4, and ours.
var contenders = []contender{
	{name: "openfaas+", system: "openfaas+", bound: singleQuery},
	{name: "openfaas+-one-to-one", system: "openfaas+-one-to-one", bound: singleQuery},
	{name: "batch", system: "batch", bound: wholeObjective},
	{name: "batch on 50 %", system: "batch", bound: wholeObjective, percent: 50}, // as in the authors' own runs
	{name: "infless", system: "infless", offset: predictionOffset},
	// with the linger of the baselines
	{name: "infless, lingering 300 s", system: "infless", offset: predictionOffset, linger: rules.Alive},
	{name: "infless-balanced", system: "infless-balanced", offset: predictionOffset},
	{name: systems.Default, system: systems.Default, bound: wholeObjective},
}

func contenderNamed(name string) contender {
	for _, e := range contenders {
		if e.name == name {
			return e
		}
	}
	panic("infless: no entrant " + name)
}

// application is a set of functions whose loads follow the same trace.
type application struct {
	name      string
	functions []function
	peak      float64 // queries/s of each function
}

// The paper does not give peaks. Q&A has the default of the authors' load generator, the others a peak that the
// clusters of all systems carry.
var applications = []application{{"OSVT", osvt, 200}, {"Q&A", qa, 600}}

// resnet is ResNet-50 alone, with the given objective.
func resnet(slo time.Duration) application {
	return application{"ResNet-50", []function{{"resnet-50", slo}}, 200}
}

// traceRun is the result of one contender serving an application along a trace.
type traceRun struct {
	offered, inTime  float64
	threads, percent float64    // occupied thread seconds, and seconds of one per cent of an accelerator
	bound            float64    // queries for a GFLOP that a linear program allows
	components       [3]float64 // sums over served queries in ms: waiting for a start, queueing, execution
	served           float64
	occupied         []float64 // GFLOP/s by step
}

// GFLOP/s of a thread and of one per cent of an accelerator (the authors' release).
const perThread, perPercent = 64, 142

func (f *traceRun) resources() float64 { return perThread*f.threads + perPercent*f.percent }

// efficiency returns the queries in time for occupied resources, in queries/s for a GFLOP/s.
func (f *traceRun) efficiency() float64 { return f.inTime / f.resources() }

// violations returns the share of the queries that were not answered in time, in per cent.
func (f *traceRun) violations() float64 { return 100 * (1 - f.inTime/f.offered) }

// instantLoads is machines on which a start takes no time.
type instantLoads struct{ truth.Model }

// Load implements truth.Model.
func (instantLoads) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 1 }

// planDelay is about the time that the authors measured for a plan of some tens of instances (§5.3).
const planDelay = 20 * time.Millisecond

// runs are the results of a contender along a trace.
type runs = reproduce.Runs[*traceRun]

// simulation adds a task that simulates a contender along a trace, with every seed.
func (run *runner) simulation(e contender, a application, trace string) runs {
	key := fmt.Sprintf("%s by %s, %s", a.name, e.name, trace)
	if len(a.functions) > 0 {
		key += fmt.Sprint(", ", a.functions[0].slo)
	}
	return reproduce.Add(run.Runner, key, int(a.peak)*len(a.functions)/50, run.Seeds,
		func(ctx context.Context, seed uint64) (*traceRun, error) {
			return simulate(ctx, e, a, trace, run.steps, seed)
		})
}

func simulate(ctx context.Context, e contender, a application, trace string, steps int, seed uint64) (*traceRun,
	error) {
	load, err := relativeLoad(trace, steps)
	if err != nil {
		return nil, err
	}
	w, err := newEnvironment(a.functions, servers)
	if err != nil {
		return nil, err
	}
	peaks, first := make([]float64, len(a.functions)), make([]float64, len(a.functions))
	for k := range peaks {
		peaks[k], first[k] = a.peak, a.peak*load[0]
	}
	c := &experiment.Case{
		Env: w, Span: time.Duration(len(load)) * stepSpan, FirstRates: first, PlanDelay: planDelay, NoReport: true,
	}
	if c.Source, err = arrivalsAlong(load, peaks, stepSpan); err != nil {
		return nil, err
	}
	if c.System, err = systems.Get(e.system); err != nil {
		return nil, err
	}
	c.System.Options.Packing.Latency = e.offset
	c.System.Options.Packing.Percent = max(c.System.Options.Packing.Percent, e.percent)
	if e.instantStarts {
		machines := w.Truth
		w.Truth = func(r *rand.Rand) (truth.Model, error) {
			m, err := machines(r)
			return instantLoads{m}, err
		}
	}
	if e.linger > 0 {
		c.System.Options.KeepAlive.Linger = e.linger
	}
	out := &traceRun{}
	by := make([]float64, len(a.functions))
	k := newWatcher(w.Spec, stepSpan)
	c.OnStep = k.onStep
	c.OnOutcome = func(o *report.Outcome) {
		out.offered++
		by[o.App]++
		if !experiment.Violated(o) {
			out.inTime++
		}
		if o.Outcome == serving.Served {
			total, cold := o.Done.Sub(o.Arrived), k.startWait(serving.StageID(o.App), o.Arrived)
			out.served++
			out.components[0] += millis(min(cold, o.Queue))
			out.components[1] += millis(max(o.Queue-cold, 0))
			out.components[2] += millis(total - o.Queue)
		}
	}
	r, err := c.Run(ctx, seed)
	if err != nil {
		return nil, err
	}
	out.threads, out.percent = r.Usage.Threads.Seconds(), r.Usage.Percent.Seconds()
	out.occupied = k.meansBySteps(len(load))
	out.bound, err = efficiencyBound(e, a.functions, by)
	return out, err
}

func millis(d time.Duration) float64 { return float64(d) / float64(ms) }

// efficiencyBound returns the most queries that a GFLOP can serve when instances may be of any fractional size. A
// linear program with unlimited resources chooses, for each function, the configuration that serves most for its
// resources.
func efficiencyBound(e contender, functions []function, queries []float64) (float64, error) {
	all, err := readLatencies()
	if err != nil {
		return 0, err
	}
	total, takes := 0.0, 0.0
	for a, f := range functions {
		if queries[a] == 0 {
			continue
		}
		best := 0.0
		for p, batches := range all[f.model] {
			if e.bound == singleQuery && p != (instanceSize{2, 10}) || e.percent > 0 && p.percent != e.percent {
				continue
			}
			for b, t := range batches {
				up, ok := float64(b)/t.Seconds(), t <= f.slo
				switch e.bound {
				case singleQuery:
					ok = ok && b == 1
				case halfObjective:
					_, up, ok = packing.Bounds(b, t, f.slo, true)
				}
				if ok {
					best = max(best, up/float64(perThread*p.threads+perPercent*p.percent))
				}
			}
		}
		if best == 0 {
			return 0, nil
		}
		total, takes = total+queries[a], takes+queries[a]/best
	}
	return total / takes, nil
}
