package ramsis

import (
	"time"

	"github.com/sluice-serving/sluice/reproduce"
)

// tasks of §7 with their objectives and, for constant load, their workers (§7.2).
var tasks = []struct {
	name    string
	slos    []time.Duration
	workers int
}{
	{"image", []time.Duration{150 * ms, 300 * ms, 500 * ms}, 60},
	{"text", []time.Duration{100 * ms, 200 * ms, 300 * ms}, 20},
}

// claims are what §7.1 and §7.2 say of all points of a task together: by how much RAMSIS is above another system, in
// points.
type claim struct {
	against    string
	mean, most float64
}

var (
	claims5 = map[string][]claim{
		"image": {{"modelswitching", 4.43, 15.09}, {"jellyfish+", 4.35, 15.08}}, "text": {
			{"modelswitching", 1.93, 3.85}, {"jellyfish+", 2.01, 4.55},
		},
	}
	claims6 = map[string][]claim{
		"image": {{"modelswitching", 4.82, 15.42}, {"jellyfish+", 4.95, 15.42}}, "text": {
			{"modelswitching", 2.25, 4.88}, {"jellyfish+", 2.26, 4.88},
		},
	}
	// savings are by how many per cent fewer workers RAMSIS needs for the same accuracy (§7.1): mean, most.
	savings = map[string][]claim{
		"image": {{"modelswitching", 20.01, 50}, {"jellyfish+", 17.53, 42.86}}, "text": {
			{"modelswitching", 25.31, 44.44}, {"jellyfish+", 31.25, 75},
		},
	}
)

// workerCounts of Figure 5.
func workerCounts() []float64 {
	var out []float64
	for k := 20.0; k <= 100; k += 10 {
		out = append(out, k)
	}
	return out
}

// constantLoads of Figure 6, in queries/s.
func constantLoads() []float64 {
	var out []float64
	for rate := 400.0; rate <= 4000; rate += 400 {
		out = append(out, rate)
	}
	return out
}

// series is one panel of Figures 5 and 6.
type series struct {
	at     setup // its workers are the axis's in Figure 5
	points []*point
}

// onTrace has everything run on the production trace: by task, then by objective.
func (l *lab) onTrace() ([][]series, error) {
	return l.all(func(task string, slo time.Duration, _ int) ([]*point, error) {
		return l.points(workerCounts(), func(x float64) (setup, *load, error) {
			return setup{task: task, slo: slo, workers: int(x)}, l.trace, nil
		})
	})
}

// onConstant has everything run under constant load.
func (l *lab) onConstant() ([][]series, error) {
	return l.all(func(task string, slo time.Duration, workers int) ([]*point, error) {
		return l.points(constantLoads(), func(x float64) (setup, *load, error) {
			on, err := l.constant(x)
			return setup{task: task, slo: slo, workers: workers}, on, err
		})
	})
}

func (l *lab) all(points func(task string, slo time.Duration, workers int) ([]*point, error)) ([][]series, error) {
	out := make([][]series, len(tasks))
	for n, t := range tasks {
		for _, slo := range t.slos {
			p, err := points(t.name, slo, t.workers)
			if err != nil {
				return nil, err
			}
			out[n] = append(out[n], series{setup{task: t.name, slo: slo, workers: t.workers}, p})
		}
	}
	return out, nil
}

// figure5 is §7.1.
func figure5(l *lab) error {
	all, err := l.onTrace()
	if err != nil {
		return err
	}
	l.Report(func(o *reproduce.Outcome) error {
		for n, task := range all {
			for _, s := range task {
				for _, p := range s.points {
					l.levels(o, "5", p, map[string]string{
						"task": s.at.task, "SLO": s.at.slo.String(), "workers": name(p.x),
					}, nil)
				}
			}
			l.gains(o, "5", tasks[n].name, task, claims5[tasks[n].name], "§7.1")
			l.fewer(o, "5", tasks[n].name, task, savings[tasks[n].name])
		}
		l.draw(o, "5", "production trace", "workers", all)
		return nil
	})
	return nil
}

// figure6 is §7.2.
func figure6(l *lab) error {
	all, err := l.onConstant()
	if err != nil {
		return err
	}
	l.Report(func(o *reproduce.Outcome) error {
		for n, task := range all {
			for _, s := range task {
				for _, p := range s.points {
					l.levels(o, "6", p, map[string]string{
						"task": s.at.task, "SLO": s.at.slo.String(), "load": name(p.x),
					}, nil)
				}
			}
			l.gains(o, "6", tasks[n].name, task, claims6[tasks[n].name], "§7.2")
		}
		l.draw(o, "6", "constant load", "load (queries/s)", all)
		return nil
	})
	return nil
}
