package ramsis

import (
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// tasks are the tasks of §7 with their objectives, and their workers under constant load (§7.2).
var tasks = []struct {
	name    string
	slos    []time.Duration
	workers int
}{
	{"image", []time.Duration{150 * ms, 300 * ms, 500 * ms}, 60},
	{"text", []time.Duration{100 * ms, 200 * ms, 300 * ms}, 20},
}

// claim is what the paper says of all points of a task together: by how much RAMSIS is above another system, mean and
// most.
type claim struct {
	against    string
	mean, most float64
}

var (
	published5 = map[string][]claim{
		"image": {{"modelswitching", 4.43, 15.09}, {"jellyfish+", 4.35, 15.08}}, "text": {
			{"modelswitching", 1.93, 3.85}, {"jellyfish+", 2.01, 4.55},
		},
	}
	published6 = map[string][]claim{
		"image": {{"modelswitching", 4.82, 15.42}, {"jellyfish+", 4.95, 15.42}}, "text": {
			{"modelswitching", 2.25, 4.88}, {"jellyfish+", 2.26, 4.88},
		},
	}
	// publishedSavings say how many per cent fewer workers RAMSIS needs for the same accuracy (§7.1).
	publishedSavings = map[string][]claim{
		"image": {{"modelswitching", 20.01, 50}, {"jellyfish+", 17.53, 42.86}}, "text": {
			{"modelswitching", 25.31, 44.44}, {"jellyfish+", 31.25, 75},
		},
	}
)

// workerCounts returns the numbers of workers of Figure 5.
func workerCounts() []float64 {
	var out []float64
	for k := 20.0; k <= 100; k += 10 {
		out = append(out, k)
	}
	return out
}

// constantRates returns the constant loads of Figure 6, in queries/s.
func constantRates() []float64 {
	var out []float64
	for rate := 400.0; rate <= 4000; rate += 400 {
		out = append(out, rate)
	}
	return out
}

// pointSeries is one panel of Figure 5 or 6.
type pointSeries struct {
	at     setup // in Figure 5 its workers are on the axis instead
	points []*point
}

// traceSeries runs all systems on the production trace: series by task, then by objective.
func (run *runner) traceSeries() ([][]pointSeries, error) {
	return run.seriesByTask(func(task string, slo time.Duration, _ int) ([]*point, error) {
		return run.points(run.workers, func(x float64) (setup, *load, error) {
			return setup{task: task, slo: slo, workers: int(x)}, run.trace, nil
		})
	})
}

// constantSeries runs all systems under constant loads: series by task, then by objective.
func (run *runner) constantSeries() ([][]pointSeries, error) {
	return run.seriesByTask(func(task string, slo time.Duration, workers int) ([]*point, error) {
		return run.points(run.rates, func(x float64) (setup, *load, error) {
			on, err := run.constantLoad(x)
			return setup{task: task, slo: slo, workers: workers}, on, err
		})
	})
}

func (run *runner) seriesByTask(points func(task string, slo time.Duration, workers int) ([]*point,
	error)) ([][]pointSeries, error) {
	out := make([][]pointSeries, len(tasks))
	for n, t := range tasks {
		for _, slo := range t.slos {
			p, err := points(t.name, slo, t.workers)
			if err != nil {
				return nil, err
			}
			out[n] = append(out[n], pointSeries{setup{task: t.name, slo: slo, workers: t.workers}, p})
		}
	}
	return out, nil
}

// figure5 compares systems on the production trace, by workers (§7.1).
func figure5(run *runner) error {
	all, err := run.traceSeries()
	if err != nil {
		return err
	}
	run.Report(func(o *reproduce.Outcome) error {
		for n, task := range all {
			for _, s := range task {
				for _, p := range s.points {
					run.addPointRows(o, "5", p, map[string]string{
						"task": s.at.task, "SLO": s.at.slo.String(), "workers": formatNumber(p.x),
					}, nil)
				}
			}
			run.addGains(o, "5", tasks[n].name, task, published5[tasks[n].name], "§7.1")
			run.addSavings(o, "5", tasks[n].name, task, publishedSavings[tasks[n].name])
		}
		run.addCharts(o, "5", "production trace", "workers", all)
		return nil
	})
	return nil
}

// figure6 compares systems under constant loads (§7.2).
func figure6(run *runner) error {
	all, err := run.constantSeries()
	if err != nil {
		return err
	}
	run.Report(func(o *reproduce.Outcome) error {
		for n, task := range all {
			for _, s := range task {
				for _, p := range s.points {
					run.addPointRows(o, "6", p, map[string]string{
						"task": s.at.task, "SLO": s.at.slo.String(), "load": formatNumber(p.x),
					}, nil)
				}
			}
			run.addGains(o, "6", tasks[n].name, task, published6[tasks[n].name], "§7.2")
		}
		run.addCharts(o, "6", "constant load", "load (queries/s)", all)
		return nil
	})
	return nil
}
