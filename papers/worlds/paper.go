// Package worlds runs every system in generated worlds (internal/measure/worlds) and puts what each has reached beside
// the fluid bound. It is nobody's paper: no world was drawn for a system.
package worlds

import (
	"context"
	"fmt"

	"github.com/sluice-serving/sluice/internal/measure/worlds"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figures lists them.
var figures = []reproduce.Experiment[*runner]{
	{
		Figure: reproduce.Figure{Name: "U", Doc: "utility of every system in every world, beside the bound"},
		Prepare: func(r *runner) error {
			r.everything()
			r.Report(r.utilities)
			return nil
		},
	},
	{
		Figure: reproduce.Figure{Name: "M", Doc: "money in worlds with machines to rent, beside the bound"},
		Prepare: func(r *runner) error {
			r.everything()
			r.Report(r.costs)
			return nil
		},
	},
	{
		Figure: reproduce.Figure{Name: "T", Doc: "the mean share of the bound by trait: what breaks which system"},
		Prepare: func(r *runner) error {
			r.everything()
			r.Report(r.traits)
			return nil
		},
	},
	{
		Figure: reproduce.Figure{
			Name: "F", Doc: "the default system beside the bound by foresight: what any rule could have had",
		},
		OnRequest: true, // it takes several minutes
		Prepare: func(r *runner) error {
			r.foresight()
			r.Report(r.foreseen)
			return nil
		},
	},
}

// Paper returns the experiments.
func Paper() reproduce.Paper {
	return reproduce.Paper{
		Name: "worlds", Title: "Worlds: every system in generated worlds that cross the traits of users' worlds",
		Figures: reproduce.Figures(figures), Run: run,
	}
}

func run(ctx context.Context, r reproduce.Request) (*reproduce.Outcome, error) {
	all := make([]int, count)
	for n := range all {
		all[n] = n
	}
	return newRunner(r, all, quickened()).runFigures(ctx)
}

// count is how many worlds there are for a seed.
var count = worlds.Count()

func (r *runner) runFigures(ctx context.Context) (*reproduce.Outcome, error) {
	if err := reproduce.Prepare(r, figures, r.Figures); err != nil {
		return nil, err
	}
	if r.runs != nil {
		r.Report(r.above)
	}
	r.AddNotes(
		"Utility is the sum of weight x accuracy / best accuracy of the app over the queries in time, divided by the "+
			"sum of the weights of all queries. The row bound is the most that any system can have with these "+
			"machines and these arrivals (fluid bound, by window); 'of the bound' is the share of it that was "+
			"reached. A system that refuses a world has none of it.",
		"A seed makes worlds of its own: --first-seed 7 runs others. 'sluice worlds generate --seed 1 --out DIR' "+
			"writes them as files; world 1-07 is the one of seed 1 and number 7.")
	return r.Run(ctx)
}

// key names the task of a system in a world; "" stands for the bound.
func key(number int, system string) string { return fmt.Sprintf("world %02d %s", number, system) }

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
