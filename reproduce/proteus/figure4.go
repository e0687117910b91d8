package proteus

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/planner/proteus"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/sim/experiment"
)

// headline are the systems of §6.1.1.
var headline = []string{"proteus", "infaas-accuracy", "sommelier", "clipper-ht", "clipper-ha"}

// What §6.2 and Figure 4 state of the authors' cluster, and what their simulator gave on medium-normal_load_300 with an
// exact solver in the place of their gap of 50 % (violations: dropped, or later than a second).
var (
	publishedDrop = map[string]float64{"proteus": 4.85, "infaas-accuracy": 13.7, "sommelier": 16, "clipper-ht": 20}
	simulatorSays = map[string][2]float64{
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

func figure4(l *lab) error {
	w, err := l.world(setup{})
	if err != nil {
		return err
	}
	limit, err := l.limit(w)
	if err != nil {
		return err
	}
	for _, t := range []*trace{l.trace(lightTrace), l.trace(authorsTrace), l.trace(heavyTrace), limit} {
		if err := l.endToEnd("4", w, t); err != nil {
			return err
		}
	}
	return l.asReleased()
}

// limit is the heaviest trace, scaled so that the fastest variants just carry its busiest ten seconds.
func (l *lab) limit(w *experiment.Environment) (*trace, error) {
	t := l.trace(heavyTrace)
	peak := t.peak(width)
	p := &proteus.Planner{
		Profile: w.Beliefs, Solver: l.Solver, Options: proteus.Options{Goal: proteus.Throughput, Batches: batches},
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
	l.Report(func(o *reproduce.Outcome) error {
		o.Notes = append(o.Notes, fmt.Sprintf(
			"Trace %s is %s with %.2f times the queries: the fastest variants of the fleet carry just its busiest "+
				"ten seconds, %.0f queries/s.",
			limitTrace, heavyTrace, multiple, sum(out.peak(width))))
		return nil
	})
	return out, nil
}

// endToEnd has the systems of the paper run one trace, with Proteus seeing the future besides, and holds both against
// exact plans of every window.
func (l *lab) endToEnd(figure string, w *experiment.Environment, t *trace) error {
	tasks := make([]*task, len(headline))
	for i, name := range headline {
		tasks[i] = l.want(name+" on "+t.name, newJob(w, system(name), t))
	}
	foreseen := newJob(w, system("proteus"), t)
	foreseen.Scaler, foreseen.PlanDelay = experiment.Foresight{Window: width * time.Second, Rates: t.windows(width)}, 0
	foreseen.System.Options.Planning.Slack = -1
	ahead := l.want("proteus that foresees "+t.name, foreseen)
	exact := l.exact(w, t)
	l.Report(func(o *reproduce.Outcome) error {
		setting := map[string]string{"trace": t.name}
		for i, name := range headline {
			known := map[string]float64{}
			if v, ok := publishedDrop[name]; ok && t.name == authorsTrace {
				known["maximum accuracy drop"] = v
			}
			totals(o, figure, tasks[i], name, setting, known, "§6.2, Figure 4: the authors' cluster")
		}
		totals(o, figure, ahead, "proteus with foresight", setting, nil, "")
		best := exact.Results[0].([]float64)
		o.AddRow(row(figure, "exact plan of every 10 s", "effective accuracy", "%", setting), 100*weighted(best, t))
		o.AddRow(row(figure, "exact plan of every 10 s", "maximum accuracy drop", "points", setting), 100*(1-lowest(best)))
		for _, x := range []struct {
			label string
			t     *task
		}{{"proteus", tasks[0]}, {"proteus with foresight", ahead}} {
			o.AddRow(row(figure, x.label, "furthest below the exact plan", "points", setting),
				x.t.each(func(r *result) float64 {
					return 100 * furthest(r, best)
				})...)
		}
		o.Charts = append(o.Charts, reproduce.Chart{
			Name: "figure-" + figure + "-" + t.name, Chart: series("Proteus, Figure "+figure+": "+t.name, t, headline,
				tasks),
		})
		return nil
	})
	return nil
}

// exact plans every window of a trace for its own demand, with nothing given up for steadiness or head-room, and
// returns the accuracies: what could be had by a system that sees ten seconds ahead and moves models in no time.
func (l *lab) exact(w *experiment.Environment, t *trace) *task {
	p := &proteus.Planner{
		Profile: w.Beliefs, Solver: l.Solver, Options: proteus.Options{
			Batches: batches, Slack: -1, Tolerance: -1, Gap: 0.002,
		},
	}
	return l.do("exact plans of "+t.name, t.total()*8, 1, func(ctx context.Context, _ uint64) (any, error) {
		var out []float64
		for _, rates := range t.tens() {
			x, err := p.Plan(ctx, plan.Request{Spec: w.Spec, Rates: rates})
			if err != nil {
				return nil, err
			}
			out = append(out, x.Forecast.Accuracy)
		}
		return out, nil
	})
}

// weighted is the mean over windows, each counting its queries.
func weighted(values []float64, t *trace) float64 {
	total, n := 0.0, 0.0
	for i, rates := range t.tens() {
		total += values[i] * sum(rates)
		n += sum(rates)
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

// furthest is how far a run's windows fall below the given accuracies, at most.
func furthest(r *result, exact []float64) float64 {
	out := 0.0
	for i := range r.windows {
		if r.windows[i].served > 0 {
			out = max(out, exact[i]-r.windows[i].mean())
		}
	}
	return out
}

// asReleased runs the authors' trace in the authors' way.
func (l *lab) asReleased() error {
	w, err := l.world(releaseSetup)
	if err != nil {
		return err
	}
	t := l.trace(authorsTrace)
	tasks := make([]*task, len(headline))
	for i, name := range headline {
		j, err := newRelease(w, name, t)
		if err != nil {
			return err
		}
		tasks[i] = l.want(name+" as released", j)
	}
	l.Report(func(o *reproduce.Outcome) error {
		setting := map[string]string{"trace": authorsTrace, "counted": "as released"}
		for i, name := range headline {
			says := simulatorSays[name]
			totals(o, "4", tasks[i], name, setting, map[string]float64{
				"maximum accuracy drop": says[0], "SLO violations": says[1],
			},
				"the authors' simulator at 6967c93 with an exact solver")
		}
		return nil
	})
	return nil
}

// series draws demand and throughput, accuracy and violations over time, of the first seed.
func series(title string, t *trace, names []string, tasks []*task) *plot.Chart {
	nan := math.NaN()
	c := &plot.Chart{Title: title, Panels: []plot.Panel{
		{Name: "Served (queries/s)", Low: 0, High: nan}, {
			Name: "Effective accuracy (% of the best)", Low: nan, High: 100,
		},
		{Name: "SLO violations (% of the queries)", XName: "time (s)", Low: 0, High: nan},
	}}
	demand := plot.Line{Name: "demand", Faint: true}
	for i, rates := range t.tens() {
		demand.X, demand.Y = append(demand.X, float64(i*width+width/2)), append(demand.Y, sum(rates))
	}
	c.Panels[0].Lines = append(c.Panels[0].Lines, demand)
	for i, name := range names {
		served, accuracy, missed := plot.Line{Name: name}, plot.Line{Name: name}, plot.Line{Name: name}
		for k, win := range tasks[i].results()[0].windows {
			at := float64(k*width + width/2)
			for _, line := range []*plot.Line{&served, &accuracy, &missed} {
				line.X = append(line.X, at)
			}
			served.Y = append(served.Y, float64(win.inTime)/width)
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
