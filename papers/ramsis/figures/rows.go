package ramsis

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// addPointRows adds accuracy and violations of every system at a point, and the bound. published, which may be nil,
// adds published numbers to rows.
func (run *runner) addPointRows(o *reproduce.Outcome, figure string, p *point, setting map[string]string,
	published func(reproduce.Row) reproduce.Row) {
	add := func(r reproduce.Row, values []float64) {
		if published != nil {
			r = published(r)
		}
		addRow(o, r, values...)
	}
	for i, s := range run.systems {
		add(row(figure, s.Name, accuracyRow, "%", setting), p.systems[i].each(accuracy))
		add(row(figure, s.Name, violationRow, "%", setting), p.systems[i].each(violations))
	}
	add(row(figure, "fluid bound", accuracyRow, "%", setting), []float64{p.bound.Results[0].(float64)})
	if p.foresight != nil {
		add(row(figure, "foresight, at most", accuracyRow, "%", setting), (&runs{p.foresight}).numbers())
	}
}

const (
	accuracyRow  = "accuracy per satisfied query"
	violationRow = "SLO violations"
)

// bases are the systems that others are compared with.
var bases = []string{"ramsis", "jellyfish+", "modelswitching"}

// addComparison compares systems with the bases. For each pair it adds the mean and the largest of the numbers that of
// returns for a seed; system and base are indices in run.systems. Of the bases only RAMSIS is compared itself. claims
// are the published numbers of RAMSIS.
func (run *runner) addComparison(o *reproduce.Outcome, figure, what, unit string, setting map[string]string,
	claims []claim,
	source string, of func(system, base, seed int) []float64) {
	for i, s := range run.systems {
		for _, base := range bases {
			b := run.systemIndex(base)
			if b < 0 || b == i || slices.Contains(bases, s.Name) && s.Name != "ramsis" {
				continue
			}
			var means, mosts []float64
			for seed := range run.Seeds {
				if v := of(i, b, seed); len(v) > 0 {
					means, mosts = append(means, reproduce.Mean(v)), append(mosts, slices.Max(v))
				}
			}
			m, x := row(figure, s.Name, what+" "+base+", mean", unit, setting),
				row(figure, s.Name, what+" "+base+", most", unit, setting)
			if c := slices.IndexFunc(claims, func(c claim) bool {
				return c.against == base
			}); c >= 0 && s.Name == "ramsis" {
				m, x = m.WithPublished(claims[c].mean, source), x.WithPublished(claims[c].most, source)
			}
			addRow(o, m, means...)
			addRow(o, x, mosts...)
		}
	}
}

// addGains adds by how much the accuracy of every system is above that of the bases, over the points at which both have
// less than 5 % violations. Greedy selection rarely has so few and is left out.
func (run *runner) addGains(o *reproduce.Outcome, figure, task string, all []pointSeries, claims []claim,
	source string) {
	run.addComparison(o, figure, "above", "points", map[string]string{"task": task}, claims, source,
		func(i, b, seed int) (out []float64) {
			if run.systems[i].Name == "greedy" {
				return nil
			}
			for _, x := range all {
				for _, p := range x.points {
					r, q := p.systems[i].result(seed), p.systems[b].result(seed)
					if r.violations < satisfiableViolations && q.violations < satisfiableViolations {
						out = append(out, r.accuracy-q.accuracy)
					}
				}
			}
			return out
		})
}

// addSavings adds how many per cent fewer workers every system needs to match a base. For every point of the base with
// less than 5 % violations, it finds the fewest workers with which the system is as accurate.
func (run *runner) addSavings(o *reproduce.Outcome, figure, task string, all []pointSeries, claims []claim) {
	run.addComparison(o, figure, "fewer workers than", "%", map[string]string{"task": task}, claims, "§7.1",
		func(i, b, seed int) (out []float64) {
			if run.systems[i].Name == "greedy" {
				return nil
			}
			for _, x := range all {
				for _, p := range x.points {
					if q := p.systems[b].result(seed); q.violations < satisfiableViolations {
						if k := fewestWorkers(x.points, i, seed, q.accuracy); !math.IsNaN(k) {
							out = append(out, 100*(1-k/p.x))
						}
					}
				}
			}
			return out
		})
}

// fewestWorkers returns the smallest x of points at which a system has less than 5 % violations and at least the
// accuracy want, to within a hundredth of a point; NaN for none.
func fewestWorkers(points []*point, system, seed int, want float64) float64 {
	for _, p := range points {
		if r := p.systems[system].result(seed); r.violations < satisfiableViolations && r.accuracy >= want-0.01 {
			return p.x
		}
	}
	return math.NaN()
}

// addCharts adds a chart for each task with a column for each objective. Accuracies are above, with gaps where more
// than 5 % are violated, as in the paper; violations are below.
func (run *runner) addCharts(o *reproduce.Outcome, figure, what, axis string, all [][]pointSeries) {
	for n, task := range all {
		c := &plot.Chart{
			Title: fmt.Sprintf("RAMSIS, Figure %s: %s, %s", figure, what, tasks[n].name), Columns: len(task),
		}
		var below []plot.Panel
		for _, s := range task {
			up, down := run.panels(s.points, fmt.Sprintf("SLO %v", s.at.slo), axis, satisfiableViolations)
			c.Panels = append(c.Panels, up)
			below = append(below, down)
		}
		c.Panels = append(c.Panels, below...)
		o.Charts = append(o.Charts, reproduce.Chart{Name: "figure-" + figure + "-" + tasks[n].name, Drawing: c})
	}
}

// panels returns accuracy and violations over an axis. Accuracies have gaps where at least most per cent are violated.
func (run *runner) panels(points []*point, what, axis string, most float64) (accurate, violated plot.Panel) {
	nan := math.NaN()
	accurate = plot.Panel{Name: what + ": accuracy (%)", XName: axis, Low: nan, High: nan}
	violated = plot.Panel{Name: what + ": violations (%)", XName: axis, Low: 0, High: nan}
	bound := plot.Line{Name: "fluid bound", Faint: true}
	for _, p := range points {
		bound.X, bound.Y = append(bound.X, p.x), append(bound.Y, p.bound.Results[0].(float64))
	}
	accurate.Lines = append(accurate.Lines, bound)
	for i, s := range run.systems {
		var x []float64
		var of []*runs
		for _, p := range points {
			x, of = append(x, p.x), append(of, p.systems[i])
		}
		a, v := lines(s.Name, x, of, most)
		accurate.Lines, violated.Lines = append(accurate.Lines, a), append(violated.Lines, v)
	}
	return accurate, violated
}

// lines returns the mean accuracy and the mean violations of runs at the places x. Accuracies have gaps where at least
// most per cent are violated.
func lines(name string, x []float64, of []*runs, most float64) (accurate, violated plot.Line) {
	accurate, violated = plot.Line{Name: name, X: x}, plot.Line{Name: name, X: x}
	for _, r := range of {
		late, level := reproduce.Mean(r.each(violations)), reproduce.Mean(r.each(accuracy))
		if late >= most {
			level = math.NaN()
		}
		accurate.Y, violated.Y = append(accurate.Y, level), append(violated.Y, late)
	}
	return accurate, violated
}
