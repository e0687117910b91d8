package ramsis

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// runner collects what the figures need, and keeps what they share. Tests lower rates, workers and spans.
type runner struct {
	*reproduce.Runner
	rates         []float64     // constant loads, in queries/s
	workers       []float64     // numbers of workers on the trace
	constantSpan  time.Duration // length of constant loads
	systems       []systems.System
	environments  map[setup]*experiment.Environment
	constantLoads map[float64]*load
	trace         *load
}

func newRunner(r reproduce.Request) (*runner, error) {
	run := &runner{
		Runner: reproduce.NewRunner(r), systems: comparedSystems(),
		environments:  make(map[setup]*experiment.Environment),
		constantLoads: make(map[float64]*load),
		rates:         constantRates(), workers: workerCounts(), constantSpan: constantSpan,
	}
	var err error
	run.trace, err = newTraceLoad(traceSpan)
	return run, err
}

// runs is the task of one system in one setup. Its methods are valid when the task has run.
type runs struct{ *reproduce.Task }

// result returns the result of seed+1.
func (r *runs) result(seed int) *result { return r.Results[seed].(*result) }

// numbers returns the results of a task whose results are numbers, by seed.
func (r *runs) numbers() []float64 {
	out := make([]float64, len(r.Results))
	for s := range out {
		out[s] = r.Results[s].(float64)
	}
	return out
}

// each returns one number for each result, by seed.
func (r *runs) each(f func(*result) float64) []float64 {
	out := make([]float64, len(r.Results))
	for s := range out {
		out[s] = f(r.result(s))
	}
	return out
}

func accuracy(r *result) float64   { return r.accuracy }
func violations(r *result) float64 { return r.violations }

// simulationTask adds a task that runs a system in a setup under a load, with every seed.
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
	x, err := newConstantLoad(fmt.Sprintf("%v queries/s", rate), rate, run.constantSpan)
	run.constantLoads[rate] = x
	return x, err
}

// point is one place on a figure's axis: the results of every system there, and bounds.
type point struct {
	x         float64
	at        setup
	on        *load
	systems   []*runs // by index in runner.systems
	bound     *reproduce.Task
	foresight *reproduce.Task // bound by foresight; nil where it is not asked for
}

// points runs all systems at every place of an axis. where returns the setup and load of a place.
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

// systemIndex returns the index of a system in run.systems, or -1.
func (run *runner) systemIndex(name string) int {
	return slices.IndexFunc(run.systems, func(s systems.System) bool { return s.Name == name })
}

// satisfiableViolations is the rate of violations, in per cent, up to which the paper shows a point (§7.1).
const satisfiableViolations = 5

// accuracyOr returns a system's accuracy with a seed, or worst where no query was in time, as in the authors' code.
func (p *point) accuracyOr(system, seed int, worst float64) float64 {
	if a := p.systems[system].result(seed).accuracy; !math.IsNaN(a) {
		return a
	}
	return worst
}

// row returns a row of this paper.
func row(figure, system, quantity, unit string, setting map[string]string) reproduce.Row {
	return reproduce.Row{
		Paper: "ramsis", Figure: figure, System: system, Quantity: quantity, Unit: unit, Setting: setting,
	}
}

// addRow adds a row unless a value is NaN.
func addRow(o *reproduce.Outcome, r reproduce.Row, values ...float64) {
	if !slices.ContainsFunc(values, math.IsNaN) {
		o.AddRow(r, values...)
	}
}

func formatNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

const ms = time.Millisecond
