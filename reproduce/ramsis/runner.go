package ramsis

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/systems"
)

// runner is what the figures share.
type runner struct {
	*reproduce.Runner
	systems       []systems.System
	environments  map[setup]*experiment.Environment
	constantLoads map[float64]*load
	trace         *load
}

func newRunner(r reproduce.Request) (*runner, error) {
	run := &runner{
		Runner: reproduce.NewRunner(r), systems: comparedSystems(), environments: make(map[setup]*experiment.Environment),
		constantLoads: make(map[float64]*load),
	}
	var err error
	run.trace, err = newTraceLoad()
	return run, err
}

// runs are those of one system in one setting, by seed.
type runs struct{ *reproduce.Task }

// result returns what a seed led to, the first being 0.
func (r *runs) result(seed int) *result { return r.Results[seed].(*result) }

// numbers are what a task led to when it led to a number.
func (r *runs) numbers() []float64 {
	out := make([]float64, len(r.Results))
	for s := range out {
		out[s] = r.Results[s].(float64)
	}
	return out
}

// each takes a number from every seed.
func (r *runs) each(f func(*result) float64) []float64 {
	out := make([]float64, len(r.Results))
	for s := range out {
		out[s] = f(r.result(s))
	}
	return out
}

func accuracy(r *result) float64   { return r.accuracy }
func violations(r *result) float64 { return r.violations }

// simulationTask has a system run in a setting with every seed.
func (run *runner) simulationTask(at setup, s systems.System, on *load) (*runs, error) {
	w, err := run.environment(at)
	if err != nil {
		return nil, err
	}
	j := newJob(w, s, on)
	key := fmt.Sprintf("%s, %s, %s, %v, %d workers, accuracy %v, %v, grid %v", s.Name, on.name, at.task, at.slo,
		at.workers, at.floor, at.modelSet, on.grid)
	return &runs{run.AddTask(key, int(on.expected()), run.Seeds, func(ctx context.Context, seed uint64) (any, error) {
		return j.simulate(ctx, seed)
	})}, nil
}

func (run *runner) environment(at setup) (*experiment.Environment, error) {
	if w := run.environments[at]; w != nil {
		return w, nil
	}
	w, err := newEnvironment(run.Solver, at)
	if err == nil {
		w.Policies = run.Policies
		run.environments[at] = w
	}
	return w, err
}

func (run *runner) constantLoad(rate float64) (*load, error) {
	if x := run.constantLoads[rate]; x != nil {
		return x, nil
	}
	x, err := newConstantLoad(fmt.Sprintf("%v queries/s", rate), rate)
	run.constantLoads[rate] = x
	return x, err
}

// point is one place on a figure's axis: what every system came to there, and the bound.
type point struct {
	x         float64
	at        setup
	on        *load
	systems   []*runs // as lab.systems
	bound     *reproduce.Task
	foresight *reproduce.Task // bound by foresight; nil where it is not asked for
}

// points has all systems run at every place of an axis.
func (run *runner) points(axis []float64, where func(x float64) (setup, *load, error)) ([]*point, error) {
	var out []*point
	for _, x := range axis {
		at, on, err := where(x)
		if err != nil {
			return nil, err
		}
		p := &point{x: x, at: at, on: on, bound: run.fluidTask(at, on)}
		for _, s := range run.systems {
			r, err := run.simulationTask(at, s, on)
			if err != nil {
				return nil, err
			}
			p.systems = append(p.systems, r)
		}
		out = append(out, p)
	}
	return out, nil
}

// systemIndex returns a system's place in the lineup, or -1.
func (run *runner) systemIndex(name string) int {
	return slices.IndexFunc(run.systems, func(s systems.System) bool { return s.Name == name })
}

// satisfiableViolations is up to which violation rate the paper shows a point (§7.1), in per cent.
const satisfiableViolations = 5

// accuracyOr is a system's accuracy at the point with a seed; worst stands in where no query was in time, as in the authors'
// code.
func (p *point) accuracyOr(system, seed int, worst float64) float64 {
	if a := p.systems[system].result(seed).accuracy; !math.IsNaN(a) {
		return a
	}
	return worst
}

// row begins a row of this paper.
func row(figure, system, quantity, unit string, setting map[string]string) reproduce.Row {
	return reproduce.Row{
		Paper: "ramsis", Figure: figure, System: system, Quantity: quantity, Unit: unit, Setting: setting,
	}
}

// addRow notes a quantity unless some seed has none.
func addRow(o *reproduce.Outcome, r reproduce.Row, values ...float64) {
	if !slices.ContainsFunc(values, math.IsNaN) {
		o.AddRow(r, values...)
	}
}

func formatNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

const ms = time.Millisecond
