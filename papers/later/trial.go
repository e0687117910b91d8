package later

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// planDelay is how long a plan takes that is asked for during a run.
const planDelay = 500 * ms

// load is arrivals of every app alike: a rate in queries/s of all apps together, by corners, and the kind of gaps.
type load struct {
	name    string
	corners []workload.Point
	linear  bool
	shape   float64 // of gamma gaps; 0 for Poisson
	span    time.Duration
}

// constant is a load that does not change.
func constant(rate float64, span time.Duration) load {
	return load{name: "constant", corners: []workload.Point{{Rate: rate}}, span: span}
}

// source returns the queries of a seed.
func (l *load) source(apps int, seed uint64) (workload.Source, error) {
	var all []workload.Source
	for a := range apps {
		corners := make([]workload.Point, len(l.corners))
		for n, c := range l.corners {
			corners[n] = workload.Point{At: c.At, Rate: c.Rate / float64(apps)}
		}
		rate, err := workload.NewRate(corners, l.linear)
		if err != nil {
			return nil, err
		}
		gaps := workload.Gaps(workload.Poisson{})
		if l.shape > 0 {
			if gaps, err = workload.NewGamma(l.shape); err != nil {
				return nil, err
			}
		}
		all = append(all, &workload.App{
			Times:    workload.NewProcess(rate, gaps, workload.Rand(seed, fmt.Sprint(l.name, " app ", a))),
			Template: reproduce.Query(serving.AppID(a)),
		})
	}
	return workload.Limit(workload.Merge(all...), serving.Time(l.span), math.MaxInt64), nil
}

// outcome is what a run came to.
type outcome struct {
	violations float64 // per cent of the queries
	accuracy   float64 // mean of those in time, per cent; NaN without any
	batch      float64 // items
	goodput    float64 // queries/s in time
	wasted     float64 // per cent of the machine time, of queries that missed their objective
	// active and busy are by second: the machines that had an instance, and those on which a batch began.
	active, busy []float64
	offered      []float64 // queries, by second
}

// meanOf returns the mean over a part of the seconds, from one share of them to another.
func meanOf(bySecond []float64, from, to float64) float64 {
	sum, n := 0.0, 0
	for k := int(from * float64(len(bySecond))); k < int(to*float64(len(bySecond))); k++ {
		sum += bySecond[k]
		n++
	}
	return sum / float64(max(n, 1))
}

// simulate runs a system in a world.
func simulate(ctx context.Context, env *experiment.Environment, s systems.System, l load, seed uint64) (
	*outcome, error) {
	apps := len(env.Spec.Apps)
	src, err := l.source(apps, seed)
	if err != nil {
		return nil, err
	}
	first := make([]float64, apps)
	for a := range first {
		first[a] = l.corners[0].Rate / float64(apps)
	}
	w := newWatch(env.Spec, l.span)
	c := experiment.Case{
		Env: env, System: s, Source: func(uint64) workload.Source { return src }, Span: l.span, FirstRates: first,
		PlanDelay: planDelay, Record: report.Options{}, OnStep: w.step,
	}
	r, err := c.Run(ctx, seed)
	if err != nil {
		return nil, err
	}
	all := &r.Report.Overall
	out := &outcome{
		violations: 100 * all.ViolationRatio, accuracy: math.NaN(), active: w.active, busy: w.busy, offered: w.offered,
	}
	if all.SatisfiedAccuracy != nil {
		out.accuracy = 100 * *all.SatisfiedAccuracy
	}
	out.goodput = all.Goodput
	if all.WastedRatio != nil {
		out.wasted = 100 * *all.WastedRatio
	}
	if all.MeanBatch != nil {
		out.batch = *all.MeanBatch
	}
	return out, nil
}

// watch counts machines by second.
type watch struct {
	workers               map[serving.InstanceID]serving.WorkerID
	instances             []int // by WorkerID
	second                int   // of the counts
	began                 []bool
	active, busy, offered []float64
}

func newWatch(spec *serving.Spec, span time.Duration) *watch {
	n := int(span / time.Second)
	return &watch{
		workers: make(map[serving.InstanceID]serving.WorkerID), instances: make([]int, len(spec.Workers)),
		began: make([]bool, len(spec.Workers)), active: make([]float64, n), busy: make([]float64, n),
		offered: make([]float64, n),
	}
}

func (w *watch) step(now serving.Time, in []engine.Input, out []engine.Decision) {
	for s := int(now.Sub(0) / time.Second); w.second < s; w.second++ {
		w.count()
	}
	if at := int(now.Sub(0) / time.Second); at < len(w.offered) {
		for n := range in {
			if in[n].Kind == engine.QueryArrived {
				w.offered[at]++
			}
		}
	}
	for n := range out {
		d := &out[n]
		switch d.Kind {
		case engine.LaunchInstance:
			w.workers[d.Instance] = d.Launch.Key.Worker
			w.instances[d.Launch.Key.Worker]++
		case engine.StopInstance:
			if at, ok := w.workers[d.Instance]; ok {
				w.instances[at]--
				delete(w.workers, d.Instance)
			}
		case engine.StartBatch:
			if at, ok := w.workers[d.Instance]; ok {
				w.began[at] = true
			}
		}
	}
}

// count ends a second.
func (w *watch) count() {
	for at := range w.began {
		if w.second < len(w.active) {
			if w.instances[at] > 0 {
				w.active[w.second]++
			}
			if w.began[at] {
				w.busy[w.second]++
			}
		}
		w.began[at] = false
	}
}

// limits say when a load counts as carried.
type limits struct {
	late     float64 // per cent of the queries that may miss their objective
	accuracy float64 // per cent, the least mean of those in time
}

func (c limits) met(x *outcome) bool { return x.violations <= c.late && !(x.accuracy < c.accuracy) }

// searchSteps is into how many parts a search divides its range.
const searchSteps = 64

// mostCarried returns the highest rate that a system carries, below the most that is looked at.
func mostCarried(ctx context.Context, env *experiment.Environment, s systems.System, l limits, most float64,
	span time.Duration, seed uint64) (float64, error) {
	low, high := 0.0, most
	for high-low > most/searchSteps {
		rate := (low + high) / 2
		got, err := simulate(ctx, env, s, constant(rate, span), seed)
		if err != nil {
			return 0, err
		}
		if l.met(got) {
			low = rate
		} else {
			high = rate
		}
	}
	return low, nil
}
