package proteus

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/proteus"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/policy/plan"
)

// comparedSystems are the systems of §6.1.1.
var comparedSystems = []string{"proteus", "infaas-accuracy", "sommelier", "clipper-ht", "clipper-ha"}

// endToEndSystems are the compared systems and the default.
var endToEndSystems = append(slices.Clone(comparedSystems), systems.Default)

// publishedDrop is what §6.2 and Figure 4 give for the authors' cluster, in points. publishedSimulator is what their
// simulator gives on medium-normal_load_300 with an exact solver instead of one with a gap of 50 %: drop in points, and
// violations in per cent, which are queries dropped or later than a second.
var (
	publishedDrop      = map[string]float64{"proteus": 4.85, "infaas-accuracy": 13.7, "sommelier": 16, "clipper-ht": 20}
	publishedSimulator = map[string][2]float64{
		"proteus": {0.73, 5.5}, "infaas-accuracy": {13.7, 15.7}, "sommelier": {7.9, 7.6}, "clipper-ht": {20.1, 11.3},
		"clipper-ha": {0.21, 32.1},
	}
)

const (
	authorsTrace = "medium-normal_load_300"
	heavyTrace   = "normal-high_load_300"
	lightTrace   = "zipf_exponential_300"
	burstyTrace  = "zipf_exponential_bursty_300"
	limitTrace   = "limit"
)

// figure4 runs systems end to end on four traces, and on the authors' as their release does.
func figure4(run *runner, f *reproduce.Sheet) error {
	limit, err := run.scaledToLimit(f)
	if err != nil {
		return err
	}
	for _, t := range []*trace{run.trace(lightTrace), run.trace(authorsTrace), run.trace(heavyTrace), limit} {
		run.endToEnd(f, t)
	}
	w, err := newEnvironment(run.Solver, releaseSetup)
	if err != nil {
		return err
	}
	at := f.At("trace", authorsTrace, "counted", "as released")
	for _, name := range comparedSystems {
		j, err := newReleaseJob(w, name, run.trace(authorsTrace))
		if err != nil {
			return err
		}
		rows := reproduce.AddRows(at, name, run.add(name+" as released", j), totals)
		const source = "the authors' simulator at 6967c93 with an exact solver"
		rows[dropRow].Published(publishedSimulator[name][0], source)
		rows[violationRow].Published(publishedSimulator[name][1], source)
	}
	return nil
}

// figure5 runs a trace with bursts: periods of high demand that begin and end suddenly (§6.3).
func figure5(run *runner, f *reproduce.Sheet) error {
	run.endToEnd(f, run.trace(burstyTrace))
	return nil
}

// scaledToLimit returns the heaviest trace, scaled so that the fastest variants just carry its busiest ten seconds.
func (run *runner) scaledToLimit(f *reproduce.Sheet) (*trace, error) {
	t := run.trace(heavyTrace)
	peak := t.peak(windowSeconds)
	p := &proteus.Planner{
		Profile: run.cluster.Beliefs, Solver: run.Solver,
		Options: proteus.Options{Goal: proteus.Throughput, Batches: batches},
	}
	x, err := p.Plan(context.Background(), plan.Request{Spec: run.spec, Rates: peak})
	if err != nil {
		return nil, err
	}
	multiple := math.Inf(1)
	for a, rate := range peak {
		multiple = min(multiple, x.Capacity[a]/rate)
	}
	out := t.scaled(limitTrace, multiple)
	f.Note(fmt.Sprintf("Trace %s is %s with %.2f times the queries: the fastest variants of the fleet carry just its "+
		"busiest ten seconds, %.0f queries/s.",
		limitTrace, heavyTrace, multiple, reproduce.Sum(out.peak(windowSeconds))))
	return out, nil
}

// endToEnd runs the compared systems on a trace, and Proteus with foresight. It compares Proteus with exact plans of
// every window.
func (run *runner) endToEnd(f *reproduce.Sheet, t *trace) {
	at := f.At("trace", t.name)
	all := make([]runs, len(endToEndSystems))
	for i, name := range endToEndSystems {
		all[i] = run.addSystem(name, t)
		rows := reproduce.AddRows(at, name, all[i], totals)
		if t.name == authorsTrace {
			rows[dropRow].Published(reproduce.In(publishedDrop, name), "§6.2, Figure 4: the authors' cluster")
		}
	}
	foreseen := newJob(run.cluster, reproduce.System("proteus"), t)
	foreseen.Scaler, foreseen.PlanDelay = experiment.Foresight{Window: windowSeconds * time.Second,
		Rates: t.windows(windowSeconds)}, 0
	foreseen.System.Options.Planning.Slack = -1
	ahead := run.add("proteus that foresees "+t.name, foreseen)
	reproduce.AddRows(at, "proteus with foresight", ahead, totals)

	exact := run.exactPlans(t)
	at.Row("exact plan of every 10 s", accuracyRow, "%",
		exact.Each(func(best []float64) float64 { return 100 * weightedMean(best, t) }))
	at.Row("exact plan of every 10 s", dropRow, "points",
		exact.Each(func(best []float64) float64 { return 100 * (1 - slices.Min(best)) }))
	below := func(r *result) float64 { return 100 * maxShortfall(r, exact.First()) }
	at.Row("proteus", "furthest below the exact plan", "points", all[0].Each(below))
	at.Row("proteus with foresight", "furthest below the exact plan", "points", ahead.Each(below))
	overTime(f, t, endToEndSystems, all)
}

// exactPlans adds a task that plans every window of a trace for its own demand, without head-room and without regard to
// the plan before. Its result are the planned accuracies by window. A system that sees ten seconds ahead and loads
// models in no time could reach them.
func (run *runner) exactPlans(t *trace) reproduce.Runs[[]float64] {
	p := &proteus.Planner{
		Profile: run.cluster.Beliefs, Solver: run.Solver, Options: proteus.Options{
			Batches: batches, Slack: -1, Tolerance: -1, Gap: 0.002,
		},
	}
	return reproduce.Add(run.Runner, "exact plans of "+t.name, t.total()*8, 1,
		func(ctx context.Context, _ uint64) (out []float64, err error) {
			for _, rates := range t.tenSecondWindows() {
				x, err := p.Plan(ctx, plan.Request{Spec: run.spec, Rates: rates})
				if err != nil {
					return nil, err
				}
				out = append(out, x.Forecast.Accuracy)
			}
			return out, nil
		})
}

// weightedMean returns the mean of a value for each window, weighted by the queries of the window.
func weightedMean(values []float64, t *trace) float64 {
	total, n := 0.0, 0.0
	for i, rates := range t.tenSecondWindows() {
		total += values[i] * reproduce.Sum(rates)
		n += reproduce.Sum(rates)
	}
	return total / n
}

// maxShortfall returns by how much the accuracy of a run's windows falls below exact, at most.
func maxShortfall(r *result, exact []float64) float64 {
	out := 0.0
	for i := range r.windows {
		if r.windows[i].served > 0 {
			out = max(out, exact[i]-r.windows[i].mean())
		}
	}
	return out
}

// overTime draws throughput with demand, accuracy and violations over time, for the first seed.
func overTime(f *reproduce.Sheet, t *trace, names []string, all []runs) {
	c := f.Chart(f.Figure+"-"+t.name, "Proteus, Figure "+f.Figure+": "+t.name, 0)
	served := c.Panel("Served (queries/s)", "", 0, reproduce.Auto).Faint("demand")
	accuracy := c.Panel("Effective accuracy (% of the best)", "", reproduce.Auto, 100)
	missed := c.Panel("SLO violations (% of the queries)", "time (s)", 0, reproduce.Auto)
	middle := func(window int) float64 { return float64(window*windowSeconds + windowSeconds/2) }
	for k, rates := range t.tenSecondWindows() {
		served.Point("demand", middle(k), reproduce.Const(reproduce.Sum(rates)))
	}
	for i, name := range names {
		draw := func(p *reproduce.Panel, of func(window) float64) {
			p.Curve(name, func() (x, y []float64) {
				for k, w := range all[i].First().windows {
					x, y = append(x, middle(k)), append(y, of(w))
				}
				return x, y
			})
		}
		draw(served, func(w window) float64 { return float64(w.inTime) / windowSeconds })
		draw(accuracy, func(w window) float64 { return 100 * w.mean() })
		draw(missed, func(w window) float64 { return 100 * (1 - float64(w.inTime)/float64(max(w.offered, 1))) })
	}
}
