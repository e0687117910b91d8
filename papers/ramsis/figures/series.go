package ramsis

import (
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// axis is what a figure varies.
type axis struct {
	name, label string
	values      []float64
	// at changes a setup to that of a place and returns its load.
	at func(s *setup, x float64) *load
}

// byWorkers varies the workers under a load.
func byWorkers(on *load, values ...float64) axis {
	return axis{"workers", "workers", values, func(s *setup, x float64) *load { s.workers = int(x); return on }}
}

// byLoad varies constant loads.
func (run *runner) byLoad() axis {
	return axis{"load", "load (queries/s)", run.rates, func(_ *setup, x float64) *load { return run.constantLoad(x) }}
}

// point is one place on a figure's axis: the results of every system there, and the fluid bound.
type point struct {
	x       float64
	at      setup
	on      *load
	systems []runs // by index in runner.systems
	bound   reproduce.Runs[float64]
}

// series is all systems along an axis.
type series struct {
	name   string // of its panels
	at     setup
	axis   axis
	points []*point
}

// along runs all systems at every place of an axis.
func (run *runner) along(x axis, name string, at setup) series {
	out := series{name: name, at: at, axis: x}
	for _, v := range x.values {
		p := &point{x: v, at: at}
		p.on = x.at(&p.at, v)
		p.bound = run.fluidTask(p.at, p.on)
		for _, s := range run.systems {
			p.systems = append(p.systems, run.simulation(p.at, s, p.on))
		}
		out.points = append(out.points, p)
	}
	return out
}

// addRows adds accuracy and violations of every system at a point, and the bound. It returns the rows by system and
// quantity.
func (run *runner) addRows(at reproduce.Place, p *point) map[string]map[string]*reproduce.Entry {
	out := make(map[string]map[string]*reproduce.Entry)
	for i, s := range run.systems {
		out[s.Name] = reproduce.AddRows(at, s.Name, p.systems[i], quantities)
	}
	const bound = "fluid bound"
	out[bound] = map[string]*reproduce.Entry{accuracyRow: at.Row(bound, accuracyRow, "%", reproduce.All(p.bound))}
	return out
}

// draw adds panels: accuracies above, with gaps where at least most per cent are violated, and violations below.
func (run *runner) draw(c *reproduce.Graph, most float64, list ...series) {
	var below []*reproduce.Panel
	for _, x := range list {
		up, down := upAndDown(x.name, x.axis.label)
		c.Add(up)
		below = append(below, down)
		up.Faint("fluid bound")
		for _, p := range x.points {
			up.Point("fluid bound", p.x, reproduce.All(p.bound))
			for i, s := range run.systems {
				drawPoint(up, down, s.Name, p.x, p.systems[i], most)
			}
		}
	}
	c.Add(below...)
}

// upAndDown returns the panels of accuracy and of violations over an axis.
func upAndDown(name, label string) (up, down *reproduce.Panel) {
	return reproduce.NewPanel(name+": accuracy (%)", label, reproduce.Auto, reproduce.Auto),
		reproduce.NewPanel(name+": violations (%)", label, 0, reproduce.Auto)
}

func drawPoint(up, down *reproduce.Panel, name string, x float64, r runs, most float64) {
	late := r.Each(violations)
	up.Point(name, x, without(r.Each(accuracy), late, most))
	down.Point(name, x, late)
}

// bases are the systems that others are compared with.
var bases = []string{"ramsis", "jellyfish+", "modelswitching"}

// claims is what the paper says of all points of a task together: by how much RAMSIS is above other systems, mean and
// most.
type claims map[string][]float64

// pair is a system and a base at a point of a series, with one seed.
type pair struct {
	system string
	series series
	x      float64
	// mine is the result of the system at the point, base that of the base.
	mine, base *result
	// at returns the result of the system at another point of the series.
	at func(*point) *result
}

// compare compares systems with the bases. For each pair it adds the mean and the largest of the numbers over the
// points of all series, without those that are NaN. Of the bases only RAMSIS is compared itself. published are numbers
// of RAMSIS.
func (run *runner) compare(at reproduce.Place, what, unit string, list []series, published claims, source string,
	number func(pair) float64) {
	for i, s := range run.systems {
		for _, base := range bases {
			b := run.systemIndex(base)
			if b < 0 || b == i || slices.Contains(bases[1:], s.Name) {
				continue
			}
			over := func(points func([]float64) float64) reproduce.Values {
				return func() (out []float64) {
					for seed := range run.Seeds {
						if v := numbers(list, i, b, seed, s.Name, number); len(v) > 0 {
							out = append(out, points(v))
						}
					}
					return out
				}
			}
			mean := at.Row(s.Name, what+" "+base+", mean", unit, over(reproduce.Mean))
			most := at.Row(s.Name, what+" "+base+", most", unit, over(slices.Max[[]float64]))
			if s.Name == bases[0] {
				mean.Published(reproduce.InList(published, base, 0), source)
				most.Published(reproduce.InList(published, base, 1), source)
			}
		}
	}
}

// numbers returns the numbers of a pair of systems over the points of all series, with one seed.
func numbers(list []series, system, base, seed int, name string, number func(pair) float64) (out []float64) {
	at := func(p *point) *result { return p.systems[system].Of(seed) }
	for _, x := range list {
		for _, p := range x.points {
			v := number(pair{name, x, p.x, at(p), p.systems[base].Of(seed), at})
			if !math.IsNaN(v) {
				out = append(out, v)
			}
		}
	}
	return out
}

// systemIndex returns the index of a system in run.systems, or -1.
func (run *runner) systemIndex(name string) int {
	return slices.IndexFunc(run.systems, func(s systems.System) bool { return s.Name == name })
}
