package ramsis

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// tasks are the tasks of §7 with their objectives, their workers under constant load (§7.2), and what the paper says of
// them: gains in points (§7.1 and §7.2), and how many per cent fewer workers RAMSIS needs for the same accuracy (§7.1).
var tasks = []struct {
	name                            string
	slos                            []time.Duration
	workers                         int
	onTrace, underConstant, savings claims
}{
	{"image", []time.Duration{150 * ms, 300 * ms, 500 * ms}, 60,
		claims{"modelswitching": {4.43, 15.09}, "jellyfish+": {4.35, 15.08}},
		claims{"modelswitching": {4.82, 15.42}, "jellyfish+": {4.95, 15.42}},
		claims{"modelswitching": {20.01, 50}, "jellyfish+": {17.53, 42.86}}},
	{"text", []time.Duration{100 * ms, 200 * ms, 300 * ms}, 20,
		claims{"modelswitching": {1.93, 3.85}, "jellyfish+": {2.01, 4.55}},
		claims{"modelswitching": {2.25, 4.88}, "jellyfish+": {2.26, 4.88}},
		claims{"modelswitching": {25.31, 44.44}, "jellyfish+": {31.25, 75}}},
}

// byTask runs all systems in the setups of §7 along an axis: for every task a series for each objective.
func (run *runner) byTask(x axis) [][]series {
	out := make([][]series, len(tasks))
	for n, t := range tasks {
		for _, slo := range t.slos {
			at := setup{task: t.name, slo: slo, workers: t.workers}
			out[n] = append(out[n], run.along(x, fmt.Sprintf("SLO %v", slo), at))
		}
	}
	return out
}

// figure5 compares systems on the production trace, by workers (§7.1).
func figure5(run *runner, f *reproduce.Sheet) error {
	for n, list := range run.byTask(byWorkers(run.trace, run.workers...)) {
		t := &tasks[n]
		run.addSeries(f, list)
		run.compare(f.At("task", t.name), "above", "points", list, t.onTrace, "§7.1", gain)
		run.compare(f.At("task", t.name), "fewer workers than", "%", list, t.savings, "§7.1", saving)
		run.drawTask(f, "production trace", t.name, list)
	}
	return nil
}

// figure6 compares systems under constant loads (§7.2).
func figure6(run *runner, f *reproduce.Sheet) error {
	for n, list := range run.byTask(run.byLoad()) {
		run.addSeries(f, list)
		run.compare(f.At("task", tasks[n].name), "above", "points", list, tasks[n].underConstant, "§7.2", gain)
		run.drawTask(f, "constant load", tasks[n].name, list)
	}
	return nil
}

func (x *series) place(f *reproduce.Sheet, p *point) reproduce.Place {
	return f.At("task", x.at.task, "SLO", x.at.slo, x.axis.name, p.x)
}

func (run *runner) addSeries(f *reproduce.Sheet, list []series) {
	for _, x := range list {
		for _, p := range x.points {
			run.addRows(x.place(f, p), p)
		}
	}
}

// drawTask adds the chart of a task, with a column for each objective.
func (run *runner) drawTask(f *reproduce.Sheet, what, task string, list []series) {
	run.draw(f.Chart(f.Figure+"-"+task, fmt.Sprintf("RAMSIS, Figure %s: %s, %s", f.Figure, what, task), len(list)),
		satisfiableViolations, list...)
}

func satisfied(r *result) bool { return r.violations < satisfiableViolations }

// gain is by how much a system is more accurate than a base, where both have less than 5 % violations. Greedy selection
// rarely has so few and is left out.
func gain(p pair) float64 {
	if p.system == "greedy" || !satisfied(p.mine) || !satisfied(p.base) {
		return math.NaN()
	}
	return p.mine.accuracy - p.base.accuracy
}

// saving is how many per cent fewer workers a system needs to match a base that has less than 5 % violations: the
// fewest with which it has so few too and at least that accuracy, to within a hundredth of a point.
func saving(p pair) float64 {
	if p.system == "greedy" || !satisfied(p.base) {
		return math.NaN()
	}
	for _, other := range p.series.points {
		if r := p.at(other); satisfied(r) && r.accuracy >= p.base.accuracy-0.01 {
			return 100 * (1 - other.x/p.x)
		}
	}
	return math.NaN()
}

// figureT3 compares the violations of Figure 5 with those on the authors' cluster. Batches there take about the
// profiled mean, not the 95th percentile. figureT4 does the same for Figure 6.
func figureT3(run *runner, f *reproduce.Sheet) error {
	return run.addTable(f, "table3.csv", "workers", byWorkers(run.trace, run.workers...))
}

func figureT4(run *runner, f *reproduce.Sheet) error {
	return run.addTable(f, "table4.csv", "load_qps", run.byLoad())
}

func (run *runner) addTable(f *reproduce.Sheet, file, column string, x axis) error {
	values, err := readPublished(file, "task,slo_ms,"+column+",system,violations_pct", 4)
	for _, list := range run.byTask(x) {
		for _, s := range list {
			for _, p := range s.points {
				for i, system := range run.systems {
					key := fmt.Sprintf("%s %d %v %s", s.at.task, s.at.slo.Milliseconds(), p.x, system.Name)
					s.place(f, p).Row(system.Name, violationRow, "%", p.systems[i].Each(violations)).
						Published(reproduce.InList(values, key, 0), "appendix F, the authors' cluster")
				}
			}
		}
	}
	return err
}
