package proteus

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// job is a system under a trace in an environment.
type job struct {
	experiment.Case
	label string // name of the system in errors
	trace *trace
	// late is the latency from which an answer counts as late; 0 means the objective.
	late time.Duration
}

// result is the result of a job with one seed.
type result struct {
	*experiment.Run
	violations float64 // fraction of the queries that were late or not served
	drop       float64 // largest loss of accuracy in a window of 10 s, as a fraction
	accuracy   float64 // effective accuracy, as a fraction
	throughput float64 // served queries/s
	windows    []window
}

// window counts the queries that arrived within ten seconds of a run.
type window struct {
	offered, served int
	inTime          int     // served, and not late
	accuracy        float64 // sum over served queries
}

// mean returns the mean accuracy of served queries, NaN when there are none.
func (w *window) mean() float64 { return w.accuracy / float64(w.served) }

const (
	// planDelay is the simulated time of planning: the measured time of the solver on one core at a gap of 0.5 %
	// (BenchmarkPlan), rounded up.
	planDelay = time.Second
	// firstWindowSeconds is the span whose demand the first plan knows.
	firstWindowSeconds = 10
	// windowSeconds is the length of the windows in which the authors look for the largest drop of accuracy.
	windowSeconds = 10
)

// newJob returns the job of a system as this project runs it. Its first plan is for the first ten seconds. For a system
// that never plans again it is for the busiest ten seconds, as for the paper's Clipper.
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

// simulate runs a job with one seed.
func (j *job) simulate(ctx context.Context, seed uint64) (*result, error) {
	arrivals, err := j.trace.arrivals(seed)
	if err != nil {
		return nil, err
	}
	c := j.Case
	c.Source = func(uint64) workload.Source { return workload.FromSlice(arrivals) }
	lateCount := 0
	// A remainder of a few seconds belongs to the last window, because its own mean would be that of a few queries.
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
