package scrooge

import (
	"github.com/sluice-serving/sluice/reproduce"
)

// running are the ways to allocate and place, in the running system (ours): what exact allocation is worth there.
var running = []entrant{
	ours,
	{name: "scrooge-written", system: "scrooge-written", turnOff: ours.turnOff},
	{
		name: "scrooge-written, with our room", system: "scrooge-written", turnOff: ours.turnOff, headroom: 1.2,
		within: 0.85,
	},
	{
		name: "scrooge-greedy, with our room", system: "scrooge-greedy", turnOff: ours.turnOff, headroom: 1.2,
		within: 0.85,
	},
	{name: "scrooge-single", system: "scrooge-single", turnOff: ours.turnOff},
}

// figureM is sessions by way of allocation.
func figureM(l *lab) error {
	// the graph whose allocations differ most (Figure 10); HiGHS takes a minute for a session
	for _, name := range []string{"traffic"} {
		g := l.graph(name)
		var tasks []*reproduce.Task
		for _, e := range running {
			tasks = append(tasks, l.serves(e, g))
		}
		l.Report(func(o *reproduce.Outcome) error {
			at := setting("graph", name)
			base := each(tasks[0], func(s *served) float64 { return s.mean() })
			for k, e := range running {
				costs := each(tasks[k], func(s *served) float64 { return s.mean() })
				o.AddRow(row("M", e.name, "cost", "$/h", at), costs...)
				o.AddRow(row("M", e.name, "cost over scrooge's", "", at), over(costs, base)...)
				o.AddRow(row("M", e.name, "finish rate", "%", at), each(tasks[k], func(s *served) float64 {
					return s.finish()
				})...)
				o.AddRow(row("M", e.name, "cost over the least", "", at), each(tasks[k], func(s *served) float64 {
					return s.mean() / s.bound
				})...)
			}
			return nil
		})
	}
	return nil
}
