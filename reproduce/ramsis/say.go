package ramsis

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
)

// levels are every system's accuracy and violations at a point, and the bound. published gives accuracies or violations that
// are known, by system and quantity.
func (l *lab) levels(o *reproduce.Outcome, figure string, p *point, setting map[string]string, published func(reproduce.Row) reproduce.Row) {
	note := func(r reproduce.Row, values []float64) {
		if published != nil {
			r = published(r)
		}
		add(o, r, values...)
	}
	for i, s := range l.systems {
		note(row(figure, s.Name, accuracyRow, "%", setting), p.systems[i].each(accuracy))
		note(row(figure, s.Name, violationRow, "%", setting), p.systems[i].each(violations))
	}
	note(row(figure, "fluid bound", accuracyRow, "%", setting), []float64{p.bound.Done[0].(float64)})
	if p.ahead != nil {
		note(row(figure, "foresight, at most", accuracyRow, "%", setting), (&runs{p.ahead}).numbers())
	}
}

const (
	accuracyRow  = "accuracy per satisfied query"
	violationRow = "SLO violations"
)

// bases are what the others are held against.
var bases = []string{"ramsis", "jellyfish+", "modelswitching"}

// gains are by how much every system's accuracy is above that of the bases, over the points at which both violate for less
// than 5 %: the mean and the most, per seed.
func (l *lab) gains(o *reproduce.Outcome, figure, task string, all []series, claims []claim, source string) {
	setting := map[string]string{"task": task}
	for i, s := range l.systems {
		for _, base := range bases {
			b := l.find(base)
			if b < 0 || b == i || slices.Contains(bases, s.Name) && s.Name != "ramsis" || s.Name == "greedy" {
				continue
			}
			var means, mosts []float64
			for seed := range l.Seeds {
				var gains []float64
				for _, x := range all {
					for _, p := range x.points {
						r, q := p.systems[i].of(seed), p.systems[b].of(seed)
						if r.violations < satisfiable && q.violations < satisfiable {
							gains = append(gains, r.accuracy-q.accuracy)
						}
					}
				}
				if len(gains) > 0 {
					means, mosts = append(means, mean(gains)), append(mosts, slices.Max(gains))
				}
			}
			m, x := row(figure, s.Name, "above "+base+", mean", "points", setting), row(figure, s.Name, "above "+base+", most", "points", setting)
			if c := slices.IndexFunc(claims, func(c claim) bool { return c.against == base }); c >= 0 && s.Name == "ramsis" {
				m, x = known(m, claims[c].mean, source), known(x, claims[c].most, source)
			}
			add(o, m, means...)
			add(o, x, mosts...)
		}
	}
}

// fewer are by how many per cent fewer workers every system needs to be as accurate as a base: for every point of the base that
// violates for less than 5 %, the fewest workers on the axis with which the system is no less accurate and violates no more
// than that.
func (l *lab) fewer(o *reproduce.Outcome, figure, task string, all []series, claims []claim) {
	setting := map[string]string{"task": task}
	for i, s := range l.systems {
		for _, base := range bases {
			b := l.find(base)
			if b < 0 || b == i || slices.Contains(bases, s.Name) && s.Name != "ramsis" || s.Name == "greedy" {
				continue
			}
			var means, mosts []float64
			for seed := range l.Seeds {
				var saved []float64
				for _, x := range all {
					for _, p := range x.points {
						if q := p.systems[b].of(seed); q.violations < satisfiable {
							if k := least(x.points, i, seed, q.accuracy); !math.IsNaN(k) {
								saved = append(saved, 100*(1-k/p.x))
							}
						}
					}
				}
				if len(saved) > 0 {
					means, mosts = append(means, mean(saved)), append(mosts, slices.Max(saved))
				}
			}
			m, x := row(figure, s.Name, "fewer workers than "+base+", mean", "%", setting), row(figure, s.Name, "fewer workers than "+base+", most", "%", setting)
			if c := slices.IndexFunc(claims, func(c claim) bool { return c.against == base }); c >= 0 && s.Name == "ramsis" {
				m, x = known(m, claims[c].mean, "§7.1"), known(x, claims[c].most, "§7.1")
			}
			add(o, m, means...)
			add(o, x, mosts...)
		}
	}
}

// least is the smallest place on the axis at which a system reaches an accuracy, to within a hundredth of a point; NaN for none.
func least(points []*point, system, seed int, want float64) float64 {
	for _, p := range points {
		if r := p.systems[system].of(seed); r.violations < satisfiable && r.accuracy >= want-0.01 {
			return p.x
		}
	}
	return math.NaN()
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// draw is a chart for each task: accuracies above, with gaps where more than 5 % are violated, as in the paper, and
// violations below; an objective each column.
func (l *lab) draw(o *reproduce.Outcome, figure, what, axis string, all [][]series) {
	for n, task := range all {
		c := &plot.Chart{Title: fmt.Sprintf("RAMSIS, Figure %s: %s, %s", figure, what, tasks[n].name), Columns: len(task)}
		var below []plot.Panel
		for _, s := range task {
			up, down := l.panels(s.points, fmt.Sprintf("SLO %v", s.at.slo), axis, satisfiable)
			c.Panels = append(c.Panels, up)
			below = append(below, down)
		}
		c.Panels = append(c.Panels, below...)
		o.Charts = append(o.Charts, reproduce.Chart{Name: "figure-" + figure + "-" + tasks[n].name, Chart: c})
	}
}

// panels are accuracy and violations over an axis; accuracies leave a gap where so many per cent are violated.
func (l *lab) panels(points []*point, what, axis string, most float64) (accurate, violated plot.Panel) {
	nan := math.NaN()
	accurate = plot.Panel{Name: what + ": accuracy (%)", XName: axis, Low: nan, High: nan}
	violated = plot.Panel{Name: what + ": violations (%)", XName: axis, Low: 0, High: nan}
	bound := plot.Line{Name: "fluid bound", Faint: true}
	for _, p := range points {
		bound.X, bound.Y = append(bound.X, p.x), append(bound.Y, p.bound.Done[0].(float64))
	}
	accurate.Lines = append(accurate.Lines, bound)
	for i, s := range l.systems {
		a, v := plot.Line{Name: s.Name}, plot.Line{Name: s.Name}
		for _, p := range points {
			late := mean(p.systems[i].each(violations))
			level := mean(p.systems[i].each(accuracy))
			if late >= most {
				level = nan
			}
			a.X, a.Y = append(a.X, p.x), append(a.Y, level)
			v.X, v.Y = append(v.X, p.x), append(v.Y, late)
		}
		accurate.Lines, violated.Lines = append(accurate.Lines, a), append(violated.Lines, v)
	}
	return accurate, violated
}
