package proteus

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/plot"
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

func figure4(run *runner) error {
	w, err := run.environment(setup{})
	if err != nil {
		return err
	}
	limit, err := run.scaledToLimit(w)
	if err != nil {
		return err
	}
	for _, t := range []*trace{run.trace(lightTrace), run.trace(authorsTrace), run.trace(heavyTrace), limit} {
		if err := run.endToEnd("4", w, t); err != nil {
			return err
		}
	}
	return run.releaseTasks()
}

// scaledToLimit returns the heaviest trace, scaled so that the fastest variants just carry its busiest ten seconds.
func (run *runner) scaledToLimit(w *experiment.Environment) (*trace, error) {
	t := run.trace(heavyTrace)
	peak := t.peak(windowSeconds)
	p := &proteus.Planner{
		Profile: w.Beliefs, Solver: run.Solver, Options: proteus.Options{Goal: proteus.Throughput, Batches: batches},
	}
	x, err := p.Plan(context.Background(), plan.Request{Spec: w.Spec, Rates: peak})
	if err != nil {
		return nil, err
	}
	multiple := math.Inf(1)
	for a, rate := range peak {
		multiple = min(multiple, x.Capacity[a]/rate)
	}
	out := t.scaled(limitTrace, multiple)
	run.Report(func(o *reproduce.Outcome) error {
		o.Notes = append(o.Notes, fmt.Sprintf(
			"Trace %s is %s with %.2f times the queries: the fastest variants of the fleet carry just its busiest "+
				"ten seconds, %.0f queries/s.",
			limitTrace, heavyTrace, multiple, reproduce.Sum(out.peak(windowSeconds))))
		return nil
	})
	return out, nil
}

// endToEnd runs the compared systems on a trace, and Proteus with foresight. It compares Proteus with exact plans of
// every window.
func (run *runner) endToEnd(figure string, w *experiment.Environment, t *trace) error {
	tasks := make([]*task, len(endToEndSystems))
	for i, name := range endToEndSystems {
		tasks[i] = run.simulationTask(name+" on "+t.name, newJob(w, system(name), t))
	}
	foreseen := newJob(w, system("proteus"), t)
	foreseen.Scaler, foreseen.PlanDelay = experiment.Foresight{Window: windowSeconds * time.Second,
		Rates: t.windows(windowSeconds)}, 0
	foreseen.System.Options.Planning.Slack = -1
	ahead := run.simulationTask("proteus that foresees "+t.name, foreseen)
	exactPlans := run.exactTask(w, t)
	run.Report(func(o *reproduce.Outcome) error {
		setting := map[string]string{"trace": t.name}
		for i, name := range endToEndSystems {
			known := map[string]float64{}
			if v, ok := publishedDrop[name]; ok && t.name == authorsTrace {
				known["maximum accuracy drop"] = v
			}
			addTotals(o, figure, tasks[i], name, setting, known, "§6.2, Figure 4: the authors' cluster")
		}
		addTotals(o, figure, ahead, "proteus with foresight", setting, nil, "")
		best := exactPlans.Results[0].([]float64)
		o.AddRow(row(figure, "exact plan of every 10 s", "effective accuracy", "%", setting), 100*weightedMean(best, t))
		o.AddRow(row(figure, "exact plan of every 10 s", "maximum accuracy drop", "points", setting),
			100*(1-lowest(best)))
		for _, x := range []struct {
			label string
			t     *task
		}{{"proteus", tasks[0]}, {"proteus with foresight", ahead}} {
			o.AddRow(row(figure, x.label, "furthest below the exact plan", "points", setting),
				x.t.each(func(r *result) float64 {
					return 100 * maxShortfall(r, best)
				})...)
		}
		o.Charts = append(o.Charts, reproduce.Chart{
			Name: "figure-" + figure + "-" + t.name, Drawing: timeChart("Proteus, Figure "+figure+": "+t.name, t,
				endToEndSystems,
				tasks),
		})
		return nil
	})
	return nil
}

// exactTask adds a task that plans every window of a trace for its own demand, without head-room and without regard to
// the plan before. Its result are the planned accuracies by window. A system that sees ten seconds ahead and loads
// models in no time could reach them.
func (run *runner) exactTask(w *experiment.Environment, t *trace) *task {
	p := &proteus.Planner{
		Profile: w.Beliefs, Solver: run.Solver, Options: proteus.Options{
			Batches: batches, Slack: -1, Tolerance: -1, Gap: 0.002,
		},
	}
	return run.addTask("exact plans of "+t.name, t.total()*8, 1, func(ctx context.Context, _ uint64) (any, error) {
		var out []float64
		for _, rates := range t.tenSecondWindows() {
			x, err := p.Plan(ctx, plan.Request{Spec: w.Spec, Rates: rates})
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

func lowest(values []float64) float64 {
	out := 1.0
	for _, v := range values {
		out = min(out, v)
	}
	return out
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

// releaseTasks runs the authors' trace as their release does.
func (run *runner) releaseTasks() error {
	w, err := run.environment(releaseSetup)
	if err != nil {
		return err
	}
	t := run.trace(authorsTrace)
	tasks := make([]*task, len(comparedSystems))
	for i, name := range comparedSystems {
		j, err := newReleaseJob(w, name, t)
		if err != nil {
			return err
		}
		tasks[i] = run.simulationTask(name+" as released", j)
	}
	run.Report(func(o *reproduce.Outcome) error {
		setting := map[string]string{"trace": authorsTrace, "counted": "as released"}
		for i, name := range comparedSystems {
			says := publishedSimulator[name]
			addTotals(o, "4", tasks[i], name, setting, map[string]float64{
				"maximum accuracy drop": says[0], "SLO violations": says[1],
			},
				"the authors' simulator at 6967c93 with an exact solver")
		}
		return nil
	})
	return nil
}

// timeChart draws throughput with demand, accuracy and violations over time, for the first seed.
func timeChart(title string, t *trace, names []string, tasks []*task) *plot.Chart {
	nan := math.NaN()
	c := &plot.Chart{Title: title, Panels: []plot.Panel{
		{Name: "Served (queries/s)", Low: 0, High: nan}, {
			Name: "Effective accuracy (% of the best)", Low: nan, High: 100,
		},
		{Name: "SLO violations (% of the queries)", XName: "time (s)", Low: 0, High: nan},
	}}
	demand := plot.Line{Name: "demand", Faint: true}
	for i, rates := range t.tenSecondWindows() {
		demand.X, demand.Y = append(demand.X, float64(i*windowSeconds+windowSeconds/2)),
			append(demand.Y, reproduce.Sum(rates))
	}
	c.Panels[0].Lines = append(c.Panels[0].Lines, demand)
	for i, name := range names {
		served, accuracy, missed := plot.Line{Name: name}, plot.Line{Name: name}, plot.Line{Name: name}
		for k, win := range tasks[i].results()[0].windows {
			at := float64(k*windowSeconds + windowSeconds/2)
			for _, line := range []*plot.Line{&served, &accuracy, &missed} {
				line.X = append(line.X, at)
			}
			served.Y = append(served.Y, float64(win.inTime)/windowSeconds)
			mean := nan
			if win.served > 0 {
				mean = 100 * win.mean()
			}
			accuracy.Y = append(accuracy.Y, mean)
			missed.Y = append(missed.Y, 100*(1-float64(win.inTime)/float64(max(win.offered, 1))))
		}
		c.Panels[0].Lines = append(c.Panels[0].Lines, served)
		c.Panels[1].Lines = append(c.Panels[1].Lines, accuracy)
		c.Panels[2].Lines = append(c.Panels[2].Lines, missed)
	}
	return c
}
