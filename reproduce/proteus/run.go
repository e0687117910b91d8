package proteus

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/systems"
)

// job is a system under a trace in a world, with what distinguishes it in the rows.
type job struct {
	experiment.Case
	label string // of the system
	trace *trace
	// late is what counts as late: the objective, or one second as in the authors' release when it is set.
	late time.Duration
}

// result is what the jobs of one system and setting led to, by seed.
type result struct {
	*experiment.Run
	violations float64 // fraction of the queries: not served, or late
	drop       float64 // largest, points of accuracy, over windows of 10 s
	accuracy   float64 // effective
	throughput float64 // served/s
	windows    []window
}

// window is ten seconds of a run, by the time of arrival.
type window struct {
	offered, served int
	inTime          int     // served within the objective, or within what counts as late
	accuracy        float64 // sum
}

// mean accuracy of what was served; NaN when nothing was.
func (w *window) mean() float64 { return w.accuracy / float64(w.served) }

const (
	// planDelay is how long a plan takes from question to answer: what the solver was measured to need on one core at
	// gap 0.5 % (BenchmarkPlan), rounded up.
	planDelay = time.Second
	// firstWindowSeconds is what the first plan knows of the demand: the rate of the first seconds.
	firstWindowSeconds = 10
	// windowSeconds of the windows over which the authors take accuracy's largest drop, in seconds.
	windowSeconds = 10
)

// system returns a system by name, or stops the program: the names are this package's own.
func system(name string) systems.System {
	s, err := systems.Get(name)
	if err != nil {
		panic(err)
	}
	return s
}

// newJob is a system as this project runs it. It begins with a plan for the first ten seconds; one that never plans
// again is given the trace's busiest ten instead, as the paper's Clipper is.
func newJob(w *experiment.Environment, s systems.System, t *trace) *job {
	j := &job{label: s.Name, trace: t}
	j.Case = experiment.Case{
		Env: w, System: s, Span: t.span(), PlanDelay: planDelay, FirstRates: t.windows(firstWindowSeconds)[0],
		Record: report.Options{Exact: 1},
	}
	if s.Scaler == "fixed" {
		j.FirstRates = t.peak(firstWindowSeconds)
	}
	return j
}

// simulate simulates a job with one seed.
func (j *job) simulate(ctx context.Context, seed uint64) (*result, error) {
	arrivals, err := j.trace.arrivals(seed)
	if err != nil {
		return nil, err
	}
	c := j.Case
	c.Source = func(uint64) workload.Source { return workload.FromSlice(arrivals) }
	lateCount := 0
	// A rest of a few seconds at the end belongs to the window before: its mean would be that of a few queries.
	windows := make([]window, j.trace.windowCount())
	c.OnOutcome = func(o *report.Outcome) {
		at := &windows[min(int(o.Arrived.Seconds())/windowSeconds, len(windows)-1)]
		at.offered++
		if o.Outcome != serving.Served {
			return
		}
		at.served++
		at.accuracy += o.Accuracy
		switch {
		case j.late > 0 && o.Done.Sub(o.Arrived) > j.late:
			lateCount++
		case j.late > 0 || !o.Late():
			at.inTime++
		}
	}
	r, err := c.Run(ctx, seed)
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", j.label, j.trace.name, err)
	}
	all := &r.Report.Overall
	out := &result{Run: r, violations: all.ViolationRatio, throughput: all.Throughput}
	if j.late > 0 {
		out.violations = float64(all.Offered-all.Served+int64(lateCount)) / float64(max(all.Offered, 1))
	}
	if all.EffectiveAccuracy != nil {
		out.accuracy = *all.EffectiveAccuracy
	}
	out.windows = windows
	for i := range windows {
		if windows[i].served > 0 {
			out.drop = max(out.drop, 1-windows[i].mean())
		}
	}
	return out, nil
}
