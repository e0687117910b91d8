package proteus

import (
	"context"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/algo/milp"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Plan implements plan.Planner. When ctx ends the search, the plan found so far is returned with its proven bound; a
// plan that cannot carry the demand says in Shed what it leaves out. It fails when some stage cannot be served at all.
func (p *Planner) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	if p.Solver == nil {
		return nil, errNoSolver
	}
	m, err := p.newProblem(r)
	if err != nil {
		return nil, err
	}
	f, err := p.find(ctx, m)
	if err != nil {
		return nil, err
	}
	return m.plan(f, r), nil
}

// found is what the search answers.
type found struct {
	*allocation
	fractions []float64 // served of the demand, by stage; nil with goal Throughput
	multiple  float64   // of the demand, with goal Throughput; otherwise 1
	bound     float64   // on the goal's value at the served fractions
	proven    bool
	duals     duals // of the relaxation whose bound it is
}

// search looks for the best allocation at the problem's head-room: it climbs from the rounded relaxation, assembles
// ways to serve whole stages where the outcome is not proven to be good enough by the relaxation alone, and has the
// solver search the program itself where that is not enough either. relaxed is that of m.build(nil); nil where it is
// not known. A shallow search leaves the last out.
func (p *Planner) search(ctx context.Context, m *problem, relaxed *milp.Solution, shallow bool) (*found, error) {
	x := m.build(nil)
	var err error
	if relaxed == nil {
		relaxed, err = p.Solver.Solve(ctx, &x.Program, milp.Limits{Relax: true})
	}
	out := &found{multiple: 1, bound: math.Inf(1), duals: m.dualsOf(x, relaxed)}
	nothing := func(int) float64 { return 0 }
	switch {
	case err == nil && relaxed.Status == milp.Optimal:
		out.allocation = m.round(func(k int) float64 { return relaxed.Values[x.workers[k]] })
		out.bound, out.proven = relaxed.Bound, true
	case err == nil:
		return nil, fmt.Errorf("planner proteus: the relaxed program is %v, which its shape rules out", relaxed.Status)
	case ctx.Err() != nil:
		out.allocation = m.round(nothing)
	default:
		return nil, fmt.Errorf("planner proteus: %w", err)
	}
	best := m.newLocalSearch(ctx, out.counts, nil)
	best.climb()
	for _, counts := range [][]int{m.running(), m.hint} {
		if counts == nil {
			continue
		}
		c := m.newLocalSearch(ctx, counts, nil)
		if c.climb(); c.objective() > best.objective() {
			best = c
		}
	}
	lacks := func() bool { return m.sheds(m.rate(best.counts, 1)) }
	if lacks() {
		best.perturb(func(float64) bool { return !lacks() })
	}
	if a := m.rate(best.counts, 1); a.better(out.allocation) {
		out.allocation = a
	}
	if m.sheds(out.allocation) {
		if best, err = p.serveMost(ctx, m, out, best); err != nil {
			return nil, err
		}
	}
	out.fractions = m.fractions(out.allocation)
	far := func(worth float64) float64 { return (out.bound - worth) / max(math.Abs(worth), 1e-9) }
	enough := m.o.Gap * negligible
	if shallow {
		enough = min(enough, m.o.Slack*negligible)
	}
	if a := m.rate(best.counts, 1); m.covers(a, out.fractions) && m.objective(a.counts, out.fractions) > m.objective(out.counts,
		out.fractions) {
		out.allocation = a
	}
	err = nil
	if far(m.objective(out.counts, out.fractions)) > enough {
		if err = p.generateColumns(ctx, m, out, enough); err != nil {
			err = fmt.Errorf("planner proteus: %w", err)
		}
	}
	gap := m.o.Gap
	if len(m.byWorker) > 0 {
		gap = max(gap/2, gap-m.o.Tolerance) // the bound counts the reward for what is kept, the plan's gap does not
	}
	if err == nil && !shallow && far(m.objective(out.counts, out.fractions)) > gap {
		err = p.improve(ctx, m, m.build(out.fractions), out, gap)
	}
	if ctx.Err() != nil {
		err = nil // what there is, is a plan
	}
	m.settle(ctx, out)
	return out, err
}

// near is the part of the gap below which there is nothing to look for.
const negligible = 0.25

// goFar is the search for goal Throughput: as far as the fleet goes, whatever the accuracy.
func (p *Planner) maximizeThroughput(ctx context.Context, m *problem) (*found, error) {
	multiple, bound, counts, err := p.largestMultiple(ctx, m, everyStage(scaled))
	out := &found{multiple: multiple, bound: bound, proven: true}
	switch {
	case err != nil && ctx.Err() == nil:
		return nil, err
	case counts == nil:
		out.allocation, out.proven = m.round(func(int) float64 { return 0 }), false
	default:
		out.allocation = m.rate(counts, 1)
	}
	m.settle(ctx, out)
	return out, nil
}

// most looks for the most that can be served, where out leaves something out: class by class, the heaviest first, to
// one fraction of each class; then whoever does not have to do with that, for the worst served may be so for want of
// workers that are of no use to the others. It returns a search for the best goal at that. In one program the first
// would drown the second: its gap is worth nothing to the accuracy.
func (p *Planner) serveMost(ctx context.Context, m *problem, out *found, best *localSearch) (*localSearch, error) {
	out.proven, out.bound = false, math.Inf(1)
	for k := len(out.least) - 1; k >= 0; k-- {
		if out.least[k] >= 1-servedTolerance {
			continue
		}
		if err := p.searchServed(ctx, m, m.byClass(out.allocation, k), out); err != nil {
			return nil, err
		}
	}
	if m.sheds(out.allocation) {
		if err := p.searchServed(ctx, m, m.byApps(out.allocation), out); err != nil {
			return nil, err
		}
	}
	fractions := m.fractions(out.allocation)
	if x := m.build(fractions); ctx.Err() == nil {
		s, err := p.Solver.Solve(ctx, &x.Program, milp.Limits{Relax: true})
		switch {
		case err == nil && s.Status == milp.Optimal:
			out.proven, out.bound, out.duals = true, s.Bound, m.dualsOf(x, s)
		case err != nil && ctx.Err() == nil:
			return nil, fmt.Errorf("planner proteus: %w", err)
		}
	}
	// What carries most and what is most accurate are far apart where both matter.
	c := m.newLocalSearch(ctx, out.counts, fractions)
	c.climb()
	best = m.newLocalSearch(ctx, best.counts, fractions)
	if best.climb(); c.objective() >= best.objective() {
		best = c
	}
	return best, nil
}

// carry looks for an allocation that serves more than out has, to within half the gap of the most there is.
func (p *Planner) searchServed(ctx context.Context, m *problem, shares []servedTogether, out *found) error {
	x, fastest := m.servedProgram(shares)
	s, err := p.Solver.Solve(ctx, &x.Program, milp.Limits{
		AbsoluteGap: m.o.Gap / 2, Nodes: m.o.Nodes, Start: m.servedPoint(x, fastest, shares, out.counts),
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil //nolint:nilerr // out of time: what there is, is a plan
	case err != nil:
		return fmt.Errorf("planner proteus: %w", err)
	case s.Status != milp.Optimal && s.Status != milp.Feasible:
		return nil
	}
	counts := make([]int, len(m.pairs))
	for n, k := range fastest {
		counts[k] = int(s.Values[x.workers[n]])
	}
	if a := m.rate(counts, 1); a.better(out.allocation) {
		out.allocation = a
	}
	return nil
}

// improve lets the solver look for a better allocation than out has, to within gap of the best.
func (p *Planner) improve(ctx context.Context, m *problem, x *program, out *found, gap float64) error {
	s, err := p.Solver.Solve(ctx, &x.Program, milp.Limits{
		Gap: gap, Nodes: m.o.Nodes, Start: m.point(x, out.allocation, out.fractions),
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil //nolint:nilerr // out of time: what there is, is a plan
	case err != nil:
		return fmt.Errorf("planner proteus: %w", err)
	case s.Status != milp.Optimal && s.Status != milp.Feasible:
		return nil // the limit came before a point; the rounded plan stands
	}
	counts := make([]int, len(m.pairs))
	for k := range counts {
		counts[k] = int(s.Values[x.workers[k]])
	}
	out.bound, out.proven = min(out.bound, s.Bound), true
	if m.objective(counts, out.fractions) >= m.objective(out.counts, out.fractions) {
		out.allocation = m.rate(counts, 1)
	}
	return nil
}

// lacking tells whether some of the demand is not served.
func (m *problem) sheds(a *allocation) bool {
	for _, f := range a.served {
		if f < 1-1e-6 {
			return true
		}
	}
	return false
}

// settle keeps of what runs as much as can be within the tolerance, and finds work for workers that are left over.
func (m *problem) settle(ctx context.Context, out *found) {
	if m.o.Goal != Throughput {
		if out.fractions == nil {
			out.fractions = m.fractions(out.allocation)
		}
		if len(m.byWorker) > 0 && m.o.Tolerance > 0 {
			m.reduceLoads(ctx, out)
		}
	}
	counts := append([]int(nil), out.counts...)
	m.useIdleWorkers(counts)
	if m.o.Goal == Throughput {
		out.multiple = m.multiple(counts)
	}
	// A multiple below 1 is that of the app which is worst off; the others get what they ask for as far as they can.
	out.allocation = m.rate(counts, max(1, out.multiple))
}

// stick looks for an allocation that loads less than out and is as good within the tolerance: first what runs as it is,
// then what a climb from there makes of it when no load may be worth less than the tolerance, a quarter of it, and so
// on. Demand that wanders by some per cent between two plans always has a slightly better one.
func (m *problem) reduceLoads(ctx context.Context, out *found) {
	have := m.running()
	least := m.value(out.counts, out.fractions) - m.o.Tolerance
	fine := func(counts []int) bool {
		now := m.rate(counts, 1)
		if !m.serves(now, out.fractions) || m.value(counts, out.fractions) < least {
			return false
		}
		out.allocation = now
		return true
	}
	if fine(have) {
		return
	}
	c := m.newLocalSearch(ctx, have, out.fractions)
	for price := m.o.Tolerance; price > c.keepReward && m.loads(out.counts) > 1; price /= 4 {
		x := m.newLocalSearch(ctx, have, out.fractions)
		x.setKeepReward(price)
		if x.climb(); m.loads(x.counts) < m.loads(out.counts) && fine(x.counts) {
			return
		}
	}
}

// loads is how many variants have to be brought up for counts.
func (m *problem) loads(counts []int) (n int) {
	for k, have := range m.running() {
		n += max(0, counts[k]-have)
	}
	return n
}

// serves tells whether a serves as much as the fractions say, to within a part of the tolerance that no one notices.
func (m *problem) serves(a *allocation, fractions []float64) bool {
	room := max(servedTolerance, m.o.Tolerance/shedCost)
	b := &allocation{served: fractions}
	m.fillScores(b)
	for k := range a.least {
		if a.least[k] < b.least[k]-room {
			return false
		}
	}
	return a.servedShare >= b.servedShare-room
}

// covers tells whether a serves of every stage what the fractions say.
func (m *problem) covers(a *allocation, fractions []float64) bool {
	for s, f := range fractions {
		if a.served[s] < f*(1-1e-9) {
			return false
		}
	}
	return true
}

// occupy gives workers that the plan has no use for something to do: what they run already where that is accurate
// enough to take a part of its stage's load, else the most accurate variant of the stage with the least to spare. It
// never lowers accuracy, and what is less loaded is late less often.
func (m *problem) useIdleWorkers(counts []int) {
	have := m.running()
	load := make([]float64, len(m.stages)) // capacity by stage at the accuracy in use
	floor := make([]float64, len(m.stages))
	for s := range m.stages {
		floor[s] = math.Inf(1)
		for _, k := range m.stages[s].pairs {
			if counts[k] > 0 {
				load[s] += float64(counts[k]) * m.pairs[k].rate
				floor[s] = min(floor[s], m.pairs[k].accuracy)
			}
		}
	}
	for g := range m.groups {
		free := len(m.groups[g].workers)
		for k := range m.pairs {
			if m.pairs[k].group == g {
				free -= counts[k]
			}
		}
		for k := range m.pairs {
			if p := &m.pairs[k]; p.group == g && p.accuracy >= floor[p.stage] {
				for ; free > 0 && have[k] > counts[k]; free-- {
					counts[k]++
					load[p.stage] += p.rate
				}
			}
		}
		for ; free > 0; free-- {
			best, worst := -1, 0.0
			for s := range m.stages {
				for _, k := range m.stages[s].pairs { // the most accurate comes first
					if p := &m.pairs[k]; p.group == g && p.accuracy >= floor[s] {
						if busy := m.stages[s].demand / max(load[s], 1e-9); busy > worst {
							best, worst = k, busy
						}
						break
					}
				}
			}
			if best < 0 {
				break
			}
			counts[best]++
			load[m.pairs[best].stage] += m.pairs[best].rate
		}
	}
}

// plan writes an allocation down.
func (m *problem) plan(f *found, r plan.Request) *plan.Plan {
	apps := len(m.spec.Apps)
	out := &plan.Plan{
		Planner: "proteus", Demand: make([]float64, apps), Capacity: make([]float64, apps),
		Forecast: plan.Forecast{Violation: -1},
	}
	if r.Snapshot != nil {
		out.Snapshot = r.Snapshot.Seq
	}
	hosts, loads := m.placeCounts(f.counts)
	out.Loads = loads
	total := make([]float64, len(m.stages)) // items/s served
	hosting := make([]int, len(m.stages))
	for k, n := range f.counts {
		total[m.pairs[k].stage] += f.rates[k]
		hosting[m.pairs[k].stage] += n
	}
	able := make([]float64, len(m.stages)) // items/s while each instance gets its share
	for s := range able {
		able[s] = math.Inf(1)
	}
	for w := range m.spec.Workers {
		k, ok := hosts[serving.WorkerID(w)]
		if !ok {
			continue
		}
		p := &m.pairs[k]
		device := m.spec.Workers[w].DeviceType
		share := 0.0
		switch {
		case m.o.Uniform:
			share = 1 / float64(hosting[p.stage])
		case total[p.stage] > 0:
			share = f.rates[k] / float64(f.counts[k]) / total[p.stage]
		}
		if share > 0 {
			able[p.stage] = min(able[p.stage], p.rate/share)
		}
		run := float64(p.limit) / p.rate
		out.Instances = append(out.Instances, plan.Instance{
			Worker: serving.WorkerID(w), Place: 1, Stage: p.stage,
			Variants: []plan.Variant{{Variant: p.variant, Limit: p.limit}}, Slots: 1,
			Cores: m.spec.DeviceTypes[device].Cores, Share: share, Hold: max(m.stages[p.stage].Budget-seconds(run), 0),
		})
	}
	out.Forecast.CostPerHour = r.CostPerHour(out.Instances)
	shed := false
	missing := make([]float64, apps)
	var accuracy, queries float64
	for a, app := range m.spec.Apps {
		out.Capacity[a] = math.Inf(1)
		fraction, right := 1.0, 1.0
		for _, s := range app.Stages {
			st := &m.stages[s]
			if st.FanOut <= 0 {
				continue
			}
			out.Capacity[a] = min(out.Capacity[a], able[s]/st.FanOut)
			fraction = min(fraction, total[s]/st.Rate)
			mean := 0.0
			for _, k := range st.pairs {
				if total[s] > 0 {
					mean += f.rates[k] / total[s] * m.spec.Variants[m.pairs[k].variant].Accuracy
				}
			}
			right *= mean
		}
		if math.IsInf(out.Capacity[a], 1) {
			out.Capacity[a] = 0
		}
		first := &m.stages[app.Stages[0]]
		out.Demand[a] = first.demand
		if missing[a] = first.Rate * max(0, 1-fraction); missing[a] > 1e-6*first.Rate {
			shed = true
		} else {
			missing[a] = 0
		}
		rate := first.Rate * fraction
		accuracy += rate * right
		queries += rate
		out.Forecast.Throughput += out.Capacity[a]
	}
	if shed {
		out.Shed = missing
	}
	if queries > 0 {
		out.Forecast.Accuracy = accuracy / queries
	}
	m.prove(out, f)
	return out
}

// prove says how good a plan is proven to be, in the goal's own unit: mean normalised accuracy, smallest normalised
// accuracy, their blend, or multiple of the demand; where not all is served, the accuracy of what is. The bound counts
// the reward for what is kept, so that it is loose by the tolerance at most.
func (m *problem) prove(out *plan.Plan, f *found) {
	value, bound := f.multiple, f.bound
	if m.o.Goal != Throughput {
		value = m.value(f.counts, f.fractions)
	}
	if !f.proven || math.IsInf(bound, 0) {
		return
	}
	out.Bound, out.Proven = max(bound, value), true
	out.Gap = (out.Bound - value) / max(math.Abs(value), 1e-9)
}
