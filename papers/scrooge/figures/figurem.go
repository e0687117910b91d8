package scrooge

import (
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// allocationContenders are the ways to allocate and place in the running system. They show the value of exact
// allocation there (ours).
var allocationContenders = []contender{
	scroogeDefault,
	{name: "scrooge-written", system: "scrooge-written", turnOff: scroogeDefault.turnOff},
	{
		name: "scrooge-written, with our room", system: "scrooge-written", turnOff: scroogeDefault.turnOff,
		headroom: 1.2,
		within:   0.85,
	},
	{
		name: "scrooge-greedy, with our room", system: "scrooge-greedy", turnOff: scroogeDefault.turnOff, headroom: 1.2,
		within: 0.85,
	},
	{name: "scrooge-single", system: "scrooge-single", turnOff: scroogeDefault.turnOff},
}

// figureM compares sessions by way of allocation.
func figureM(run *runner) error {
	// Only the graph whose allocations differ most (Figure 10): HiGHS takes a minute for a session.
	for _, name := range []string{"traffic"} {
		g := run.graph(name)
		var tasks []*reproduce.Task
		for _, e := range allocationContenders {
			tasks = append(tasks, run.simulationTask(e, g))
		}
		run.Report(func(o *reproduce.Outcome) error {
			at := reproduce.Setting("graph", name)
			base := reproduce.Each(tasks[0], func(s *sessionRun) float64 { return s.mean() })
			for k, e := range allocationContenders {
				costs := reproduce.Each(tasks[k], func(s *sessionRun) float64 { return s.mean() })
				o.AddRow(row("M", e.name, "cost", "$/h", at), costs...)
				o.AddRow(row("M", e.name, "cost over scrooge's", "", at), reproduce.Ratios(costs, base)...)
				o.AddRow(row("M", e.name, "finish rate", "%", at), reproduce.Each(tasks[k],
					func(s *sessionRun) float64 {
						return s.finishRate()
					})...)
				o.AddRow(row("M", e.name, "cost over the least", "", at),
					reproduce.Each(tasks[k], func(s *sessionRun) float64 {
						return s.mean() / s.bound
					})...)
			}
			return nil
		})
	}
	return nil
}
