package scrooge

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// published14 are finish rates in per cent for turn-off delays of 0, 30 and 120 s (§4.4). Traffic, face and tracker:
// 91.9 to 93.8 without a delay, over 97 and over 98 with one. Caption, audio and actdet: over 96 and over 97.
var published14 = map[string][]float64{
	"traffic": {91.9, 97, 98}, "face": {91.9, 97, 98}, "tracker": {91.9, 97, 98}, "caption": {0, 96, 97},
	"audio": {0, 96, 97}, "actdet": {0, 96, 97},
}

var turnOffDelays = []time.Duration{0, 30 * time.Second, 120 * time.Second}

// figure14 shows the value of keeping instances loaded that a plan has dropped.
func figure14(run *runner) error {
	tasks := make(map[string][]*reproduce.Task)
	for i := range run.graphs {
		g := &run.graphs[i]
		for _, d := range turnOffDelays {
			e := scroogeDefault
			if d != e.turnOff {
				e.name, e.turnOff = fmt.Sprintf("%s, turned off after %v", e.name, d), d
			}
			tasks[g.name] = append(tasks[g.name], run.simulationTask(e, g))
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		var names []string
		lines := make([]plot.Line, len(turnOffDelays))
		for i := range run.graphs {
			name := run.graphs[i].name
			names = append(names, name)
			for k, d := range turnOffDelays {
				at := reproduce.Setting("graph", name, "turn-off delay", d)
				f := row("14", "scrooge", "finish rate", "%", at)
				if p := published14[name]; p != nil && p[k] > 0 {
					f = f.WithPublished(p[k], "§4.4, Figure 14: at least")
				}
				finish := reproduce.Each(tasks[name][k], func(s *sessionRun) float64 { return s.finishRate() })
				o.AddRow(f, finish...)
				o.AddRow(row("14", "scrooge", "cost", "$/h", at), reproduce.Each(tasks[name][k],
					func(s *sessionRun) float64 {
						return s.mean()
					})...)
				o.AddRow(row("14", "scrooge", "plans", "", at), reproduce.Each(tasks[name][k],
					func(s *sessionRun) float64 {
						return float64(s.plans)
					})...)
				lines[k].Name = d.String()
				lines[k].Y = append(lines[k].Y, finish[0])
			}
		}
		addChart(o, "14", "14: turn-off delays", 1, reproduce.Bars("finish rate (%)", names, lines...))
		return nil
	})
	return nil
}
