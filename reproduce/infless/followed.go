package infless

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/measure/report"
	planner "github.com/sluice-serving/sluice/planner/infless"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/sim/truth"
	"github.com/sluice-serving/sluice/systems"
)

// entrant is a system in an experiment.
type entrant struct {
	name, system string
	// offset is the factor on what is believed of execution times: INFless adds a tenth to its predictions (§3.3).
	offset float64
	// linger is how long instances stay that a fallen load needs no more; 0 means the system's own.
	linger time.Duration
	// percent leaves only parts with so much of an accelerator; 0 leaves all.
	percent int
	// instant is with starts that take no time.
	instant bool
	bound   kind
}

// kind of what a linear program may choose from for a system.
type kind uint8

const (
	builtIn kind = iota // batches of at most half the objective (Eq. 1)
	onTop               // batches of at most the objective
	single              // one query at a time on two threads and 10 %
)

const predictionOffset = 1.1

// entrants are the systems of Figures 12, 15 and Table 4, and ours.
var entrants = []entrant{
	{name: "openfaas+", system: "openfaas+", bound: single},
	{name: "batch", system: "batch", bound: onTop},
	{name: "batch on 50 %", system: "batch", bound: onTop, percent: 50}, // as in the authors' own runs
	{name: "infless", system: "infless", offset: predictionOffset},
	// as the baselines
	{name: "infless, lingering 300 s", system: "infless", offset: predictionOffset, linger: scale.Alive},
	{name: "infless-balanced", system: "infless-balanced", offset: predictionOffset},
}

func named(name string) entrant {
	for _, e := range entrants {
		if e.name == name {
			return e
		}
	}
	panic("infless: no entrant " + name)
}

// application is functions that follow a trace together.
type application struct {
	name      string
	functions []function
	peak      float64 // queries/s of each function
}

// Peaks, which the paper does not give: for Q&A the load generator's default, and for the others what all systems'
// clusters carry.
var applications = []application{{"OSVT", osvt, 200}, {"Q&A", qa, 600}}

// resnet is ResNet-50 alone, with an objective.
func resnet(slo time.Duration) application {
	return application{"ResNet-50", []function{{"resnet-50", slo}}, 200}
}

// followed is what a system made of an application that follows a trace.
type followed struct {
	offered, inTime  float64
	threads, percent float64    // thread seconds, and seconds of a per cent of an accelerator
	bound            float64    // queries for a GFLOP, as a linear program allows
	parts            [3]float64 // sums over served queries in ms: waiting for a start, queueing, execution
	served           float64
	held             []float64 // GFLOP/s occupied, by step
}

// Of both kinds of resources (the authors' release): GFLOP/s of a thread and of a per cent of an accelerator.
const perThread, perPercent = 64, 142

func (f *followed) resources() float64 { return perThread*f.threads + perPercent*f.percent }

// efficiency is queries in time for what is occupied, in queries/s for a GFLOP/s.
func (f *followed) efficiency() float64 { return f.inTime / f.resources() }

// violations are in per cent.
func (f *followed) violations() float64 { return 100 * (1 - f.inTime/f.offered) }

// instant is machines on which a start takes no time.
type instant struct{ truth.Model }

// Load implements truth.Model.
func (instant) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 1 }

// planDelay is about what the authors measured for a plan of some tens of instances (§5.3).
const planDelay = 20 * time.Millisecond

// follows has a system serve an application along a trace.
func (l *lab) follows(e entrant, a application, trace string) *reproduce.Task {
	key := fmt.Sprintf("%s by %s, %s", a.name, e.name, trace)
	if len(a.functions) > 0 {
		key += fmt.Sprint(", ", a.functions[0].slo)
	}
	return l.AddTask(key, int(a.peak)*len(a.functions)/50, l.Seeds, func(ctx context.Context, seed uint64) (any, error) {
		return followOne(ctx, e, a, trace, l.steps, seed)
	})
}

func followOne(ctx context.Context, e entrant, a application, trace string, steps int, seed uint64) (*followed, error) {
	load, err := relative(trace, steps)
	if err != nil {
		return nil, err
	}
	w, err := newWorld(a.functions, servers)
	if err != nil {
		return nil, err
	}
	peaks, first := make([]float64, len(a.functions)), make([]float64, len(a.functions))
	for k := range peaks {
		peaks[k], first[k] = a.peak, a.peak*load[0]
	}
	c := &experiment.Case{
		Env: w, Span: time.Duration(len(load)) * step, FirstRates: first, PlanDelay: planDelay, NoReport: true,
	}
	if c.Source, err = follow(load, peaks, step); err != nil {
		return nil, err
	}
	if c.System, err = systems.Get(e.system); err != nil {
		return nil, err
	}
	c.System.Options.Packing.Latency = e.offset
	c.System.Options.Packing.Percent = max(c.System.Options.Packing.Percent, e.percent)
	if e.instant {
		happens := w.Truth
		w.Truth = func(r *rand.Rand) (truth.Model, error) {
			m, err := happens(r)
			return instant{m}, err
		}
	}
	if e.linger > 0 {
		c.System.Options.Keeping.Linger = e.linger
	}
	out := &followed{}
	by := make([]float64, len(a.functions))
	k := newWatcher(w.Spec, step)
	c.OnStep = k.watch
	c.OnOutcome = func(o *report.Outcome) {
		out.offered++
		by[o.App]++
		if !experiment.Violated(o) {
			out.inTime++
		}
		if o.Outcome == serving.Served {
			total, cold := o.Done.Sub(o.Arrived), k.cold(serving.StageID(o.App), o.Arrived)
			out.served++
			out.parts[0] += millis(min(cold, o.Queue))
			out.parts[1] += millis(max(o.Queue-cold, 0))
			out.parts[2] += millis(total - o.Queue)
		}
	}
	r, err := c.Run(ctx, seed)
	if err != nil {
		return nil, err
	}
	out.threads, out.percent = r.Usage.Threads.Seconds(), r.Usage.Percent.Seconds()
	out.held = k.steps(len(load))
	out.bound, err = allowed(e, a.functions, by)
	return out, err
}

func millis(d time.Duration) float64 { return float64(d) / float64(ms) }

// allowed is how many queries a GFLOP serves in instances of any configuration that may be cut to any size. A linear
// program over them that has as many resources as it wants chooses for each function what serves most for them.
func allowed(e entrant, functions []function, queries []float64) (float64, error) {
	all, err := latencies()
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
			if e.bound == single && p != (part{2, 10}) || e.percent > 0 && p.percent != e.percent {
				continue
			}
			for b, t := range batches {
				up, ok := float64(b)/t.Seconds(), t <= f.slo
				switch e.bound {
				case single:
					ok = ok && b == 1
				case builtIn:
					_, up, ok = planner.Bounds(b, t, f.slo, true)
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
