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

// lab is what the figures share.
type lab struct {
	*reproduce.Runner
	systems   []systems.System
	worlds    map[setup]*experiment.Environment
	constants map[float64]*load
	trace     *load
}

func newLab(r reproduce.Request) (*lab, error) {
	l := &lab{
		Runner: reproduce.NewRunner(r), systems: compared(), worlds: make(map[setup]*experiment.Environment),
		constants: make(map[float64]*load),
	}
	var err error
	l.trace, err = trace()
	return l, err
}

// runs are those of one system in one setting, by seed.
type runs struct{ *reproduce.Task }

// of returns what a seed led to, the first being 0.
func (r *runs) of(seed int) *result { return r.Results[seed].(*result) }

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
		out[s] = f(r.of(s))
	}
	return out
}

func accuracy(r *result) float64   { return r.accuracy }
func violations(r *result) float64 { return r.violations }

// want has a system run in a setting with every seed.
func (l *lab) want(at setup, s systems.System, on *load) (*runs, error) {
	w, err := l.world(at)
	if err != nil {
		return nil, err
	}
	j := newJob(w, s, on)
	key := fmt.Sprintf("%s, %s, %s, %v, %d workers, accuracy %v, %v, grid %v", s.Name, on.name, at.task, at.slo,
		at.workers, at.floor, at.choice, on.grid)
	return &runs{l.AddTask(key, int(on.expected()), l.Seeds, func(ctx context.Context, seed uint64) (any, error) {
		return j.run(ctx, seed)
	})}, nil
}

func (l *lab) world(at setup) (*experiment.Environment, error) {
	if w := l.worlds[at]; w != nil {
		return w, nil
	}
	w, err := world(l.Solver, at)
	if err == nil {
		w.Policies = l.Policies
		l.worlds[at] = w
	}
	return w, err
}

func (l *lab) constant(rate float64) (*load, error) {
	if x := l.constants[rate]; x != nil {
		return x, nil
	}
	x, err := constant(fmt.Sprintf("%v queries/s", rate), rate)
	l.constants[rate] = x
	return x, err
}

// point is one place on a figure's axis: what every system came to there, and the bound.
type point struct {
	x       float64
	at      setup
	on      *load
	systems []*runs // as lab.systems
	bound   *reproduce.Task
	ahead   *reproduce.Task // bound by foresight; nil where it is not asked for
}

// points has all systems run at every place of an axis.
func (l *lab) points(axis []float64, where func(x float64) (setup, *load, error)) ([]*point, error) {
	var out []*point
	for _, x := range axis {
		at, on, err := where(x)
		if err != nil {
			return nil, err
		}
		p := &point{x: x, at: at, on: on, bound: l.bound(at, on)}
		for _, s := range l.systems {
			r, err := l.want(at, s, on)
			if err != nil {
				return nil, err
			}
			p.systems = append(p.systems, r)
		}
		out = append(out, p)
	}
	return out, nil
}

// find returns a system's place in the lineup, or -1.
func (l *lab) find(name string) int {
	return slices.IndexFunc(l.systems, func(s systems.System) bool { return s.Name == name })
}

// satisfiable is up to which violation rate the paper shows a point (§7.1), in per cent.
const satisfiable = 5

// of is a system's accuracy at the point with a seed; worst stands in where no query was in time, as in the authors'
// code.
func (p *point) of(system, seed int, worst float64) float64 {
	if a := p.systems[system].of(seed).accuracy; !math.IsNaN(a) {
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

// add notes a quantity unless some seed has none.
func add(o *reproduce.Outcome, r reproduce.Row, values ...float64) {
	if !slices.ContainsFunc(values, math.IsNaN) {
		o.AddRow(r, values...)
	}
}

// known gives a row what was published.
func known(r reproduce.Row, value float64, source string) reproduce.Row {
	r.Published, r.Source = reproduce.Published(value), source
	return r
}

func name(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

const ms = time.Millisecond
