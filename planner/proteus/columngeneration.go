package proteus

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/algo/milp"
)

// assembly is the program once more, with a column for every way to serve a whole stage rather than for every pair (the
// decomposition of Dantzig and Wolfe). Stages only compete for workers, so the relaxation splits no more stages than
// there are groups, where that of the program splits every worker it likes to: its bound is far closer, and so is what
// comes of rounding it. There are far too many ways to list; those that matter are found by pricing workers, and they
// prove the bound too.
type master struct {
	m           *problem
	fractions   []float64
	target      []float64 // items/s by stage
	totalWeight float64   // of weight times target
	running     []int
	keepReward  float64
	columns     [][]column // by stage
	bound       float64
	duals       duals // those that gave the bound
}

// way is one way to serve a stage.
type column struct {
	counts   []int // by the stage's pairs
	workers  []int // by group
	reward   float64
	accuracy float64
}

// prices are what a worker costs, by group, and what the accuracy of a stage is worth beyond its part of the mean.
type duals struct{ worker, accuracy []float64 }

const (
	// pricings is how often workers are priced anew.
	maxRounds = 30
	// fillings are the nodes of the search for the ways to serve one stage at one price.
	knapsackNodes = 30000
	// listed is how many ways of a stage come of one pricing.
	columnsPerRound = 12
	// wide is the same for the last pricing.
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

// add lists a way, by the counts of all pairs, unless it leaves out some of the target.
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

// price lists the best ways at prices, at most so many a stage and by slack worse than the best, and tightens the
// bound. complete tells that it found all there are, or others at least as good with the same workers. It proves
// nothing when ctx ends it.
func (x *master) generate(ctx context.Context, at duals, slack float64, listed int) (complete bool) {
	m := x.m
	mean, smallest := m.goal()
	bound := 0.0
	counts, workers := make([]int, len(m.pairs)), make([]int, len(m.groups))
	var key []byte
	type seen struct {
		counts []int
		worth  float64
	}
	complete = true
	for s := range m.stages {
		if ctx.Err() != nil {
			return false
		}
		st := &m.stages[s]
		f := knapsack{left: make([]int, len(m.groups)), slack: slack, nodes: knapsackNodes}
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
			if have := x.running[k]; have > 0 && x.keepReward > 0 {
				one.max, one.kept = have, true
				one.cost -= x.keepReward
				if one.cost > 0 {
					one.kept = false
				}
				f.items = append(f.items, one)
			}
		}
		found := make(map[string]*seen)
		f.visitSolution = func(taken []int, worth float64) {
			clear(counts)
			for i, n := range taken {
				if it := &f.items[i]; it.kept {
					n = it.max
				}
				counts[f.items[i].pair] += n
			}
			// Of ways with the same workers only the best can be of use, unless the accuracy counts for itself.
			key = key[:0]
			if smallest == 0 {
				clear(workers)
				for _, k := range st.pairs {
					workers[m.pairs[k].group] += counts[k]
				}
				for _, n := range workers {
					key = binary.AppendUvarint(key, uint64(n))
				}
			} else {
				for _, k := range st.pairs {
					key = binary.AppendUvarint(key, uint64(counts[k]))
				}
			}
			if o := found[string(key)]; o == nil {
				found[string(key)] = &seen{slices.Clone(counts), worth}
			} else if worth > o.worth {
				copy(o.counts, counts)
				o.worth = worth
			}
		}
		f.solve(x.target[s])
		all := slices.SortedFunc(maps.Values(found), func(a, b *seen) int {
			return cmp.Or(cmp.Compare(b.worth, a.worth), slices.Compare(a.counts, b.counts))
		})
		complete = complete && f.nodes >= 0 && len(all) <= listed
		for n, l := range all[:min(len(all), listed)] {
			if n > 0 && l.worth < f.best-slack {
				break
			}
			x.add(s, l.counts)
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

// program chooses one way for every stage.
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

// converge prices workers until the bound and the relaxed choice of ways meet, or done says that the bound is good
// enough.
func (x *master) converge(ctx context.Context, solver milp.Solver, slack float64, done func() bool) error {
	at, own := x.duals, 1.0
	for range maxRounds {
		before := x.bound
		x.generate(ctx, at, slack, columnsPerRound)
		// New prices are those of the relaxed choice as long as that brings the bound down, and closer to the best so
		// far where it does not: the choice is between few ways, and its prices jump about.
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

// pricesOf are the prices of a relaxed program's solution.
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

// assemble looks for a better allocation than out has and for a better bound, until the two are near.
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
	// What is cheapest for every stage alone rarely adds up to the workers there are. A choice better than value has no
	// way that is by more than the gap worse than the best at these prices.
	complete := x.generate(ctx, x.duals, x.bound-value, columnsInLastRound)
	choice, chosen, _ := x.program()
	s, err := p.Solver.Solve(ctx, choice, milp.Limits{Gap: near / 2, Nodes: m.o.Nodes})
	if err != nil || s.Values == nil {
		return err
	}
	if complete {
		rewards := 0.0 // for keeping workers that serve nothing, of which no way knows
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
