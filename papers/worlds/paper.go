// Package worlds runs every system in generated worlds (internal/measure/worlds) and puts what each has reached beside
// the fluid bound. It is nobody's paper: no world was drawn for a system.
package worlds

import (
	"github.com/sluice-serving/sluice/internal/measure/worlds"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

var study = reproduce.Study[*runner]{
	Name: "worlds", Title: "Worlds: every system in generated worlds that cross the traits of users' worlds",
	New: func(q reproduce.Request) (*runner, error) {
		var all []int
		for n := range count {
			all = append(all, n)
		}
		return newRunner(q, all, quickened()), nil
	},
	Figures: []reproduce.Declaration[*runner]{
		{Name: "U", Declare: utilities, Doc: "utility of every system in every world, beside the bound"},
		{Name: "M", Declare: costs, Doc: "money in worlds with machines to rent, beside the bound"},
		{Name: "T", Declare: traits, Doc: "the mean share of the bound by trait: what breaks which system"},
		{Name: "F", Declare: foresight, OnRequest: true, // it takes several minutes
			Doc: "the default system beside the bound by foresight: what any rule could have had"},
		{Name: "L", Declare: lengths, OnRequest: true,
			Doc: "the mean share of the bound in worlds whose queries have lengths"},
		{Name: "C", Declare: confidences, OnRequest: true,
			Doc: "the mean share of the bound in worlds whose variants know how sure they are"},
	},
	Notes: []string{
		"Utility is the sum of weight x accuracy / best accuracy of the app over the queries in time, divided by the " +
			"sum of the weights of all queries. The row bound is the most that any system can have with these " +
			"machines and these arrivals (fluid bound, by window); 'of the bound' is the share of it that was " +
			"reached. A system that refuses a world has none of it.",
		"A seed makes worlds of its own: --first-seed 7 runs others. 'sluice worlds generate --seed 1 --out DIR' " +
			"writes them as files; world 1-07 is the one of seed 1 and number 7.",
	},
}

// Paper returns the experiments.
func Paper() reproduce.Paper { return study.Paper() }

// count is how many worlds there are for a seed.
var count = worlds.Count()

// quickened lists all systems. Those that make policies in advance make coarser ones: for the demand alone, with fewer
// levels of slack and shorter queues told apart. With their own settings each world would take minutes.
func quickened() []systems.System {
	out := systems.All()
	for k := range out {
		out[k] = quick(out[k])
	}
	return out
}

func quick(s systems.System) systems.System {
	if s.Planner != "ramsis" {
		return s
	}
	p := &s.Options.Policies
	p.Known, p.Levels, p.Longest = true, 24, 16
	if p.Variable { // takes the square of that
		p.Levels, p.Longest = 16, 6
	}
	return s
}
