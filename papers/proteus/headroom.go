package proteus

import (
	"context"

	"github.com/sluice-serving/sluice/internal/algo/milp"
)

// headrooms are the factors on the least head-room that are tried. The paper plans for a fixed 5 % more than the demand
// and leaves idle what the accuracy does not need. But if the most accurate variants fit twice, or nearly, a plan for
// twice the demand costs no accuracy and absorbs the bursts between two plans.
var headrooms = []float64{1, 1.25, 1.6, 2, 2.5, 3}

// find searches for the best allocation, at the largest head-room that costs no more accuracy than the slack.
func (p *Planner) find(ctx context.Context, m *problem) (*found, error) {
	if m.o.Goal == Throughput {
		return p.maximizeThroughput(ctx, m)
	}
	if err := p.liftDemand(ctx, m); err != nil {
		return nil, err
	}
	if m.o.Slack <= 0 {
		m.scale(1)
		return p.search(ctx, m, nil, false)
	}
	// Step 1: the relaxation bounds which head-rooms cost no more than the slack.
	limit, room := 0.0, 0
	var all []*milp.Solution
	for k := range headrooms {
		m.scale(headrooms[k])
		relaxed, err := p.Solver.Solve(ctx, &m.build(nil).Program, milp.Limits{Relax: true})
		if err != nil || relaxed.Status != milp.Optimal {
			break // the search reports the error, or does without a relaxation
		}
		all = append(all, relaxed)
		if k == 0 {
			limit = relaxed.Objective - m.o.Slack
		}
		if relaxed.Objective < limit {
			break
		}
		room = k
	}
	// Step 2: search at the largest of these head-rooms, then at the next smaller ones. The relaxation is more
	// optimistic than whole workers can be, and includes the tolerance for kept ones. A plan that is good enough here
	// is closer to its bound than the search requires, so the solver is not needed.
	for ; room > 0 && ctx.Err() == nil; room-- {
		m.scale(headrooms[room])
		f, err := p.search(ctx, m, all[room], true)
		if err != nil {
			return nil, err
		}
		if f.score >= limit-m.o.Slack-m.o.Tolerance && !m.sheds(f.allocation) {
			return m.keepRunning(ctx, f, room, limit), nil
		}
	}
	m.scale(1)
	if len(all) == 0 {
		all = append(all, nil)
	}
	return p.search(ctx, m, all[0], false)
}

// keepRunning keeps the running placement if its head-room is at most one step smaller. Demand that varies around a
// step must not cause loads.
func (m *problem) keepRunning(ctx context.Context, f *found, room int, limit float64) *found {
	if m.o.Tolerance <= 0 || room == 0 {
		return f
	}
	m.scale(headrooms[room-1])
	if now := m.rate(m.running(), 1); now.score >= limit-m.o.Slack-m.o.Tolerance && !m.sheds(now) {
		kept := *f
		kept.allocation, kept.proven = now, false
		m.settle(ctx, &kept)
		return &kept
	}
	m.scale(headrooms[room])
	return f
}

// scale sets the head-room to a multiple of the least, or to what clumps ask for where that is more.
func (m *problem) scale(by float64) {
	for s := range m.stages {
		m.stages[s].demand = m.stages[s].Rate * m.o.Headroom * max(by, 1+m.lifted*m.stages[s].lift)
	}
}
