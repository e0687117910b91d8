package worlds

import (
	"context"
	"sync"

	"github.com/sluice-serving/sluice/internal/measure/worlds"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// runner collects the runs of systems in worlds. Figures share all of them.
type runner struct {
	*reproduce.Runner
	numbers []int // of the worlds
	systems []systems.System
	limits  []*reproduce.Task   // by position in numbers
	runs    [][]*reproduce.Task // by position in numbers, then in systems

	foreseenLimits, defaults []*reproduce.Task // by position in numbers

	mu     sync.Mutex
	places map[[2]uint64]*opened
}

// opened is a world that is read once for all its runs.
type opened struct {
	once    sync.Once
	place   *place
	refused string
	err     error
}

func newRunner(r reproduce.Request, numbers []int, list []systems.System) *runner {
	return &runner{
		Runner: reproduce.NewRunner(r), numbers: numbers, systems: list, places: make(map[[2]uint64]*opened),
	}
}

// open returns a world of the runner.
func (r *runner) open(seed uint64, number int) (*place, string, error) {
	r.mu.Lock()
	o := r.places[[2]uint64{seed, uint64(number)}]
	if o == nil {
		o = &opened{}
		r.places[[2]uint64{seed, uint64(number)}] = o
	}
	r.mu.Unlock()
	o.once.Do(func() { o.place, o.refused, o.err = open(seed, number) })
	return o.place, o.refused, o.err
}

// everything adds the runs of all systems in all worlds, once.
func (r *runner) everything() {
	if r.runs != nil {
		return
	}
	r.findLimits()
	for _, n := range r.numbers {
		var list []*reproduce.Task
		for _, s := range r.systems {
			list = append(list, r.runOf(n, s))
		}
		r.runs = append(r.runs, list)
	}
}

// findLimits adds the bounds of all worlds, once.
func (r *runner) findLimits() {
	if r.limits != nil {
		return
	}
	for _, n := range r.numbers {
		r.limits = append(r.limits, r.AddTask(key(n, ""), 1, r.Seeds,
			func(ctx context.Context, seed uint64) (any, error) {
				p, _, err := r.open(seed, n)
				if err != nil {
					return nil, err
				}
				return p.limit(ctx, r.Solver)
			}))
	}
}

// runOf adds the runs of a system in a world.
func (r *runner) runOf(n int, s systems.System) *reproduce.Task {
	return r.AddTask(key(n, s.Name), 1, r.Seeds, func(ctx context.Context, seed uint64) (any, error) {
		p, refused, err := r.open(seed, n)
		if err != nil || refused != "" {
			return &result{refused: refused}, err
		}
		return p.run(ctx, s, r.Solver, r.Policies)
	})
}

// each calls do for every world in turn. w is its position in numbers, k the position of its seed.
func (r *runner) each(do func(w, k int, p *place, most *limit) error) error {
	for k := range r.Seeds {
		for w, n := range r.numbers {
			p, _, err := r.open(r.First+uint64(k), n)
			if err != nil {
				return err
			}
			if err := do(w, k, p, r.limits[w].Results[k].(*limit)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *runner) result(w, k, s int) *result { return r.runs[w][s].Results[k].(*result) }

// setting names a world in rows.
func setting(p *place) map[string]string {
	return reproduce.Setting("world", p.Name, "traits", p.TraitList())
}

// traitNames are the traits that some world has, in the order of the vocabulary.
func (r *runner) traitNames(has func(worlds.Trait) bool) (out []worlds.Trait) {
	for _, m := range worlds.Vocabulary() {
		if has(m.Trait) {
			out = append(out, m.Trait)
		}
	}
	return out
}
