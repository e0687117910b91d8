package proteus

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/algo/milp"
)

// master is the program once more, with a column for every way to serve a whole stage instead of one for every pair
// (Dantzig and Wolfe 1960). Stages compete for workers only, so its relaxation splits at most as many stages as there
// are groups. The relaxation of the program splits workers everywhere. So the master's bound is far closer, and so is
// its rounding. There are too many columns to list. Column generation finds those that matter and proves the bound.
type master struct {
	m           *problem
	fractions   []float64
	target      []float64 // items/s by stage
	totalWeight float64   // sum of weight times target
	// by pair, the workers that run it
	running []int
	// for each worker that keeps what it runs
	keepReward float64
	columns    [][]column // by stage
	// on the objective of every allocation
	bound float64
	duals duals // those that gave the bound
}

// column is one way to serve a stage.
type column struct {
	counts  []int // by the stage's pairs
	workers []int // by group
	// its part of the objective
	reward   float64
	accuracy float64
}

// duals are the prices of a worker, by group, and of the accuracy of a stage beyond its part of the mean, by stage.
type duals struct{ worker, accuracy []float64 }

const (
	// maxRounds bounds the rounds of column generation.
	maxRounds = 30
	// knapsackNodes bounds the search for the columns of one stage in one round.
	knapsackNodes = 30000
	// columnsPerRound is how many columns of a stage a round adds at most.
	columnsPerRound = 12
	// columnsInLastRound is the same for the last round.
	columnsInLastRound = 40
)

func (m *problem) newMaster(fractions []float64) *master {
	x := &master{
		m: m, fractions: fractions, target: make([]float64, len(m.stages)), columns: make([][]column, len(m.stages)),
		bound: math.Inf(1),
	}
	for s := range m.stages {
		x.target[s] = m.stages[s].demand * fractions[s]
		x.totalWeight += m.stages[s].weight * x.target[s]
	}
	x.totalWeight = max(x.totalWeight, 1e-12)
	x.running, x.keepReward = m.keepRewards()
	return x
}

// add adds the column with the given counts, by pair, unless it leaves out some of the target or is dominated.
func (x *master) add(s int, counts []int) {
	st := &x.m.stages[s]
	served, sum := x.m.serve(s, counts, x.fractions[s], nil)
	if served < x.target[s]*(1-1e-9) {
		return
	}
	w := column{workers: make([]int, len(x.m.groups)), accuracy: 1}
	mean, smallest := x.m.goal()
	for _, k := range st.pairs {
		w.counts = append(w.counts, counts[k])
		w.workers[x.m.pairs[k].group] += counts[k]
		w.reward += x.keepReward * float64(min(counts[k], x.running[k]))
	}
	if x.target[s] > 0 {
		w.accuracy = sum / x.target[s]
		w.reward += mean * st.weight * sum / x.totalWeight
	}
	no := func(o column) bool {
		return slices.Equal(o.workers, w.workers) && o.reward >= w.reward && (smallest == 0 || o.accuracy >= w.accuracy)
	}
	if slices.ContainsFunc(x.columns[s], no) {
		return
	}
	x.columns[s] = append(x.columns[s], w)
}

// generate adds the best columns of every stage at the given dual prices, and tightens the bound. Of each stage it adds
// at most listed columns, and none that is worse than the best by more than slack. complete reports whether no other
// column of that quality exists, except ones that are no better with the same workers. It is false when ctx ends the
// search.
func (x *master) generate(ctx context.Context, at duals, slack float64, listed int) (complete bool) {
	m := x.m
	_, smallest := m.goal()
	bound := 0.0
	found := newSolutions(m, smallest > 0)
	complete = true
	for s := range m.stages {
		if ctx.Err() != nil {
			return false
		}
		f := x.knapsack(s, at, slack)
		found.reset(s)
		f.visitSolution = func(taken []int, value float64) { found.add(f.items, taken, value) }
		f.solve(x.target[s])
		all := found.sorted()
		complete = complete && f.nodes >= 0 && len(all) <= listed
		for n, one := range all[:min(len(all), listed)] {
			if n > 0 && one.value < f.best-slack {
				break
			}
			x.add(s, one.counts)
		}
		bound += f.upper
		if x.target[s] <= 0 {
			bound += at.accuracy[s]
		}
	}
	rest := smallest
	for g := range m.groups {
		bound += at.worker[g] * float64(len(m.groups[g].workers))
	}
	for s := range m.stages {
		rest -= at.accuracy[s]
	}
	bound += max(rest, 0)
	if bound < x.bound {
		x.bound, x.duals = bound, at
	}
	return complete
}

// knapsack is the pricing problem of a stage: the workers that serve its target at the most value, less their prices.
func (x *master) knapsack(s int, at duals, slack float64) *knapsack {
	m, st := x.m, &x.m.stages[s]
	mean, _ := m.goal()
	f := &knapsack{left: make([]int, len(m.groups)), slack: slack, nodes: knapsackNodes}
	for g := range m.groups {
		f.left[g] = len(m.groups[g].workers)
	}
	for _, k := range st.pairs {
		p := &m.pairs[k]
		one := item{
			pair: k, group: p.group, rate: p.rate, max: len(m.groups[p.group].workers), cost: at.worker[p.group],
		}
		if x.target[s] > 0 {
			one.reward = p.accuracy * (mean*st.weight/x.totalWeight + at.accuracy[s]/x.target[s])
		}
		f.items = append(f.items, one)
		// Workers that keep the pair are an item of their own: they earn the reward for it.
		if have := x.running[k]; have > 0 && x.keepReward > 0 {
			one.max = have
			one.cost -= x.keepReward
			one.kept = one.cost <= 0
			f.items = append(f.items, one)
		}
	}
	return f
}

// solutions are the distinct solutions of a stage's knapsack.
type solutions struct {
	m *problem
	// byCounts tells solutions apart by their counts. Otherwise they are told apart by the workers they use, since of
	// solutions with the same workers only the best is useful unless the accuracy of a stage counts for itself.
	byCounts bool
	stage    int
	best     map[string]*solution

	counts, workers []int // working memory, by pair and by group
	key             []byte
}

type solution struct {
	counts []int // by pair
	value  float64
}

func newSolutions(m *problem, byCounts bool) *solutions {
	return &solutions{m: m, byCounts: byCounts, counts: make([]int, len(m.pairs)), workers: make([]int, len(m.groups))}
}

func (l *solutions) reset(s int) { l.stage, l.best = s, make(map[string]*solution) }

// add notes a solution that takes so many workers of every item.
func (l *solutions) add(items []item, taken []int, value float64) {
	clear(l.counts)
	for i, n := range taken {
		if it := &items[i]; it.kept {
			n = it.max
		}
		l.counts[items[i].pair] += n
	}
	pairs := l.m.stages[l.stage].pairs
	l.key = l.key[:0]
	if l.byCounts {
		for _, k := range pairs {
			l.key = binary.AppendUvarint(l.key, uint64(l.counts[k]))
		}
	} else {
		clear(l.workers)
		for _, k := range pairs {
			l.workers[l.m.pairs[k].group] += l.counts[k]
		}
		for _, n := range l.workers {
			l.key = binary.AppendUvarint(l.key, uint64(n))
		}
	}
	if o := l.best[string(l.key)]; o == nil {
		l.best[string(l.key)] = &solution{slices.Clone(l.counts), value}
	} else if value > o.value {
		copy(o.counts, l.counts)
		o.value = value
	}
}

// sorted lists the solutions from the highest value down.
func (l *solutions) sorted() []*solution {
	return slices.SortedFunc(maps.Values(l.best), func(a, b *solution) int {
		return cmp.Or(cmp.Compare(b.value, a.value), slices.Compare(a.counts, b.counts))
	})
}

// program returns the restricted master problem: one column of every stage, within the workers of each group. chosen is
// by stage and column, floors by stage the row of its accuracy; nil without fair goals.
func (x *master) program() (p *milp.Program, chosen [][]int, floors []int) {
	p = &milp.Program{Maximize: true}
	_, smallest := x.m.goal()
	floor := none
	if smallest > 0 {
		floor = p.Column(milp.Column{Objective: smallest, Upper: 1})
	}
	workers := make([][]milp.Term, len(x.m.groups))
	chosen = make([][]int, len(x.columns))
	for s := range x.columns {
		var one, accuracy []milp.Term
		for _, w := range x.columns[s] {
			z := p.Column(milp.Column{Objective: w.reward, Upper: 1, Integer: true})
			chosen[s] = append(chosen[s], z)
			one = append(one, milp.Term{Column: z, Coef: 1})
			accuracy = append(accuracy, milp.Term{Column: z, Coef: w.accuracy})
			for g, n := range w.workers {
				if n > 0 {
					workers[g] = append(workers[g], milp.Term{Column: z, Coef: float64(n)})
				}
			}
		}
		p.Row(1, 1, one...)
		if floor != none {
			floors = append(floors, p.Row(0, milp.Inf, append(accuracy, milp.Term{Column: floor, Coef: -1})...))
		}
	}
	for g := range workers {
		p.Row(-milp.Inf, float64(len(x.m.groups[g].workers)), workers[g]...)
	}
	return p, chosen, floors
}

// converge generates columns until the bound meets the relaxed master problem to within slack, or done says that the
// bound is good enough.
func (x *master) converge(ctx context.Context, solver milp.Solver, slack float64, done func() bool) error {
	at, own := x.duals, 1.0
	for range maxRounds {
		before := x.bound
		x.generate(ctx, at, slack, columnsPerRound)
		// Duals are those of the relaxed master problem as long as they lower the bound. If they do not, they are
		// smoothed towards the best duals so far: with few columns they oscillate.
		if x.bound < before-slack/10 {
			own = 1
		} else if own /= 2; own < 0.1 {
			return nil
		}
		if done() {
			return nil
		}
		p, _, floors := x.program()
		s, err := solver.Solve(ctx, p, milp.Limits{Relax: true})
		if err != nil || s.Status != milp.Optimal || x.bound-s.Objective < slack {
			return err
		}
		at = duals{slices.Clone(x.duals.worker), slices.Clone(x.duals.accuracy)}
		workers := s.Duals[len(p.Rows)-len(at.worker):]
		for g := range at.worker {
			at.worker[g] += own * (math.Abs(workers[g]) - at.worker[g])
		}
		for s0, row := range floors {
			at.accuracy[s0] += own * (math.Abs(s.Duals[row]) - at.accuracy[s0])
		}
	}
	return nil
}

// dualsOf returns the duals of the relaxed program.
func (m *problem) dualsOf(x *program, s *milp.Solution) duals {
	out := duals{make([]float64, len(m.groups)), make([]float64, len(m.stages))}
	if s == nil || len(s.Duals) == 0 {
		return out
	}
	for g, row := range x.group {
		if row != none {
			out.worker[g] = math.Abs(s.Duals[row])
		}
	}
	for i, row := range x.floors {
		out.accuracy[i] = math.Abs(s.Duals[row])
	}
	return out
}

// generateColumns looks for a better allocation than out has and for a better bound, until they are within near of each
// other.
func (p *Planner) generateColumns(ctx context.Context, m *problem, out *found, near float64) error {
	x := m.newMaster(out.fractions)
	x.duals = out.duals
	for s := range m.stages {
		x.add(s, out.counts)
	}
	value := m.objective(out.counts, out.fractions)
	within := near * math.Abs(value)
	err := x.converge(ctx, p.Solver, within/float64(len(m.stages)), func() bool { return x.bound-value <= within })
	out.bound = min(out.bound, x.bound)
	if err != nil || out.bound-value <= within {
		return err
	}
	// The best columns of all stages rarely add up to the workers there are. In a better allocation than out, no column
	// is worse than the best at these duals by more than the gap.
	complete := x.generate(ctx, x.duals, x.bound-value, columnsInLastRound)
	choice, chosen, _ := x.program()
	s, err := p.Solver.Solve(ctx, choice, milp.Limits{Gap: near / 2, Nodes: m.o.Nodes})
	if err != nil || s.Values == nil {
		return err
	}
	if complete {
		rewards := 0.0 // for kept workers that serve nothing; no column has them
		for _, n := range x.running {
			rewards += x.keepReward * float64(n)
		}
		out.bound = min(out.bound, max(s.Bound, value)+rewards)
	}
	counts := make([]int, len(m.pairs))
	for st, list := range chosen {
		for i, z := range list {
			if s.Values[z] > 0.5 {
				for j, k := range m.stages[st].pairs {
					counts[k] = x.columns[st][i].counts[j]
				}
			}
		}
	}
	if m.objective(counts, out.fractions) > value {
		out.allocation = m.rate(counts, 1)
	}
	return nil
}
