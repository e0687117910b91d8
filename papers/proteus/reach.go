package proteus

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// reachProgram is the program of how much a fleet carries, whatever the accuracy: which workers host a stage, such that
// every stage gets its demand times a multiple. Only the fastest variant of each group matters. A plan sheds by
// importance, but this multiple is the same for all apps: a demand is their mix.
type reachProgram struct {
	milp.Program
	m        *problem
	workers  []int // column by host
	pairs    []int // pair by host
	multiple int   // column
	added    []int // by DeviceTypeID: column of added workers, -1 where none may be added
}

// role says how a stage's demand counts.
type role uint8

const (
	scaled role = iota // times the multiple
	whole              // as it is
	absent             // not at all
)

// everyStage gives every stage one role.
func everyStage(r role) func(serving.StageID) role { return func(serving.StageID) role { return r } }

// role returns how a stage's demand counts. A stage that no query reaches is absent.
func (m *problem) role(roles func(serving.StageID) role, s int) role {
	if m.stages[s].demand <= 0 {
		return absent
	}
	return roles(serving.StageID(s))
}

// newReachProgram makes the program. If price is nil it maximises the multiple, up to limit. Otherwise it minimises the
// price of added workers; price is by DeviceTypeID, and negative where no worker may be added. ok is false when nothing
// serves some stage that counts.
func (m *problem) newReachProgram(roles func(serving.StageID) role, limit float64, price []float64) (x *reachProgram,
	ok bool) {
	x = &reachProgram{m: m}
	x.Maximize = price == nil
	fastest := make([][]int, len(m.stages))
	for s := range m.stages {
		part := m.role(roles, s)
		if part == absent {
			continue
		}
		most := 0.0
		fastest[s], most = m.fastest(s)
		if len(fastest[s]) == 0 {
			return nil, false
		}
		if part == scaled {
			limit = min(limit, most/m.stages[s].demand)
		}
	}
	if math.IsInf(limit, 1) {
		limit = 1 // nothing is scaled
	}
	objective := 1.0
	if price != nil {
		objective = 0
	}
	x.multiple = x.Column(milp.Column{Objective: objective, Upper: limit})
	x.addGrowth(fastest, price)
	workers := make([][]milp.Term, len(m.groups))
	for s := range m.stages {
		var row []milp.Term
		atLeast, most := 0.0, limit
		switch m.role(roles, s) {
		case absent:
			continue
		case whole:
			atLeast, most = 1, 1
		case scaled:
			row = append(row, milp.Term{Column: x.multiple, Coef: -1})
		}
		for _, k := range fastest[s] {
			p := &m.pairs[k]
			upper := float64(len(m.groups[p.group].workers))
			if x.mayGrow(p.group) {
				upper += x.Columns[x.added[m.groups[p.group].device]].Upper
			}
			n := x.Column(milp.Column{Upper: upper, Integer: true})
			x.workers, x.pairs = append(x.workers, n), append(x.pairs, k)
			workers[p.group] = append(workers[p.group], milp.Term{Column: n, Coef: 1})
			// No worker counts for more than the demand on its stage. That tightens the relaxation and keeps
			// coefficients near 1.
			row = append(row, milp.Term{Column: n, Coef: min(p.rate/m.stages[s].demand, most)})
		}
		x.Row(atLeast, milp.Inf, row...)
	}
	for g, terms := range workers {
		if len(terms) == 0 {
			continue
		}
		if x.mayGrow(g) {
			terms = append(terms, milp.Term{Column: x.added[m.groups[g].device], Coef: -1})
		}
		x.Row(-milp.Inf, float64(len(m.groups[g].workers)), terms...)
	}
	return x, true
}

// fastest returns, for each group that can serve a stage, the pair with the highest rate, and the items/s of all their
// workers.
func (m *problem) fastest(s int) (pairs []int, most float64) {
	for g := range m.groups {
		best := -1
		for _, k := range m.stages[s].pairs {
			if p := &m.pairs[k]; p.group == g && (best < 0 || p.rate > m.pairs[best].rate) {
				best = k
			}
		}
		if best >= 0 {
			pairs = append(pairs, best)
			most += float64(len(m.groups[g].workers)) * m.pairs[best].rate
		}
	}
	return pairs, most
}

// addGrowth makes the columns of added workers. The columns are bounded by the workers that would carry everything the
// type can serve.
func (x *reachProgram) addGrowth(fastest [][]int, price []float64) {
	x.added = make([]int, len(x.m.spec.DeviceTypes))
	for d := range x.added {
		x.added[d] = -1
		if d >= len(price) || price[d] < 0 {
			continue
		}
		enough := 0.0
		for s := range fastest {
			slowest := math.Inf(1)
			for _, k := range fastest[s] {
				if p := &x.m.pairs[k]; int(x.m.groups[p.group].device) == d {
					slowest = min(slowest, p.rate)
				}
			}
			enough += math.Ceil(x.m.stages[s].demand / slowest)
		}
		if enough > 0 {
			x.added[d] = x.Column(milp.Column{Objective: price[d], Upper: enough, Integer: true})
		}
	}
}

// mayGrow reports whether workers may be added to a group: new workers may serve anything.
func (x *reachProgram) mayGrow(g int) bool {
	return x.m.groups[g].stage == serving.None && x.added[x.m.groups[g].device] >= 0
}

// carries returns the multiple that a solution carries: the smallest of the scaled stages.
func (x *reachProgram) carries(values []float64, roles func(serving.StageID) role) float64 {
	rate := make([]float64, len(x.m.stages))
	for h, n := range x.workers {
		p := &x.m.pairs[x.pairs[h]]
		rate[p.stage] += values[n] * p.rate
	}
	least := math.Inf(1)
	for s := range rate {
		if x.m.role(roles, s) == scaled {
			least = min(least, rate[s]/x.m.stages[s].demand)
		}
	}
	return least
}

// multipleTolerance is how far a multiple that was found may be from the largest, relatively.
const multipleTolerance = 0.001

// reachNodes bounds these searches. Their programs are a tenth of a plan's size, and a node takes a millisecond.
const reachNodes = 5000

// largestMultiple finds the largest multiple that can be carried, a bound on it, and counts by pair that carry it. The
// multiple is -1 if whole stages cannot be carried, 0 if nothing serves some scaled stage.
func (p *Planner) largestMultiple(ctx context.Context, m *problem, roles func(serving.StageID) role) (multiple,
	bound float64, counts []int, err error) {
	for s := range m.stages {
		if len(m.stages[s].pairs) > 0 {
			continue
		}
		switch m.role(roles, s) {
		case whole:
			return -1, -1, nil, nil
		case scaled:
			return 0, 0, nil, nil
		}
	}
	x, _ := m.newReachProgram(roles, math.Inf(1), nil)
	s, err := p.solve(ctx, x, milp.Limits{Gap: multipleTolerance, Nodes: max(m.o.Nodes, reachNodes)})
	if err != nil {
		return 0, 0, nil, err
	}
	if s.Values == nil {
		return -1, -1, nil, nil
	}
	counts = make([]int, len(m.pairs))
	for h, n := range x.workers {
		counts[x.pairs[h]] = int(s.Values[n])
	}
	multiple = x.carries(s.Values, roles)
	return multiple, max(s.Bound, multiple), counts, nil
}

// Reach returns the largest multiple of the demand in r that the fleet carries, the same for every app, head-room
// included and whatever the accuracy: the largest one found (to one part in a thousand, or the planner's node limit),
// and a bound on it. It fails when nothing can serve some stage.
func Reach(ctx context.Context, p *Planner, r plan.Request) (multiple, bound float64, err error) {
	m, err := p.newProblem(r)
	if err != nil {
		return 0, 0, err
	}
	multiple, bound, _, err = p.largestMultiple(ctx, m, everyStage(scaled))
	return multiple, bound, err
}

// carriesAll reports whether the demand can be carried, head-room included. A search that its node limit ends says no.
func (p *Planner) carriesAll(ctx context.Context, m *problem) (bool, error) {
	x, ok := m.newReachProgram(everyStage(whole), 1, nil)
	if !ok {
		return false, nil
	}
	x.Columns[x.multiple].Objective = 0
	s, err := p.solve(ctx, x, milp.Limits{Nodes: max(m.o.Nodes, reachNodes)})
	return err == nil && s.Values != nil, err
}

// additions finds the added workers at the lowest price, by DeviceTypeID, that let the demand be carried. ok is false
// when none do; proven says that none do at a lower price. within is the price difference that does not matter.
func (p *Planner) additions(ctx context.Context, m *problem, price []float64, within float64) (add []int, proven,
	ok bool, err error) {
	x, ok := m.newReachProgram(everyStage(whole), 1, price)
	if !ok {
		return nil, false, false, nil
	}
	s, err := p.solve(ctx, x, milp.Limits{AbsoluteGap: within, Nodes: max(m.o.Nodes, reachNodes)})
	if err != nil || s.Values == nil {
		return nil, false, false, err
	}
	add = make([]int, len(x.added))
	for d, c := range x.added {
		if c >= 0 {
			add[d] = int(s.Values[c])
		}
	}
	return add, s.Status == milp.Optimal, true, nil
}

func (p *Planner) solve(ctx context.Context, x *reachProgram, l milp.Limits) (*milp.Solution, error) {
	if p.Solver == nil {
		return nil, errNoSolver
	}
	s, err := p.Solver.Solve(ctx, &x.Program, l)
	if err != nil {
		return nil, fmt.Errorf("planner proteus: %w", err)
	}
	return s, nil
}

var errNoSolver = errors.New("planner proteus has no solver")
