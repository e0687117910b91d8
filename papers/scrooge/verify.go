package scrooge

import (
	"fmt"
	"math"
	"time"
)

// sumTolerance is the relative error that sums of rates and costs may have.
const sumTolerance = 1e-9

// Verify reports the first claim of an allocation about the problem that does not hold: rates are carried, no machine
// gets more than it can take, every use keeps its module's budget, the budgets of every path sum to at most the
// objective, and cost and latency are those of the uses.
func (a *Allocation) Verify(p *Problem) error {
	if len(a.Modules) != len(p.Modules) {
		return fmt.Errorf("allocation: %d modules, want %d", len(a.Modules), len(p.Modules))
	}
	cost, at := 0.0, make([]time.Duration, len(p.Modules)) // at: the longest time before an item reaches the module
	arrives := make([]time.Duration, len(p.Modules))
	slowest := time.Duration(0)
	for i := range p.Modules {
		m, x := &p.Modules[i], &a.Modules[i]
		c, worst, err := x.weigh(p, m)
		if err != nil {
			return fmt.Errorf("allocation: module %d: %w", i, err)
		}
		cost += c
		if worst > x.Budget {
			return fmt.Errorf("allocation: module %d may take %v, its budget is %v", i, worst, x.Budget)
		}
		if x.Arrives < arrives[i] {
			return fmt.Errorf("allocation: module %d is reached after %v, not %v", i, arrives[i], x.Arrives)
		}
		if end := x.Arrives + x.Budget; end > p.SLO {
			return fmt.Errorf("allocation: module %d's budget ends at %v, the objective is %v", i, end, p.SLO)
		}
		slowest = max(slowest, at[i]+worst)
		for _, n := range m.Next {
			at[n] = max(at[n], at[i]+worst)
			arrives[n] = max(arrives[n], x.Arrives+x.Budget)
		}
	}
	if slowest != a.Latency || slowest > p.SLO {
		return fmt.Errorf("allocation: the longest path takes %v, it says %v, the objective is %v", slowest, a.Latency,
			p.SLO)
	}
	if math.Abs(cost-a.Cost) > sumTolerance*max(cost, 1) {
		return fmt.Errorf("allocation: costs %v $/h, it says %v", cost, a.Cost)
	}
	if a.Bound > a.Cost+sumTolerance*max(cost, 1) {
		return fmt.Errorf("allocation: its bound is %v $/h, more than its cost of %v", a.Bound, a.Cost)
	}
	return nil
}

// weigh returns the cost of a module's uses in $/h, and the longest time an item spends there.
func (x *Allocated) weigh(p *Problem, m *Module) (cost float64, worst time.Duration, err error) {
	rate := 0.0
	for _, u := range x.Uses {
		if u.Mode < 0 || u.Mode >= len(m.Modes) || u.Count < 1 {
			return 0, 0, fmt.Errorf("%d machines in mode %d of %d", u.Count, u.Mode, len(m.Modes))
		}
		mode := &m.Modes[u.Mode]
		if !(u.Rate > 0) || u.Rate > mode.Rate()*(1+sumTolerance) {
			return 0, 0, fmt.Errorf("a machine in mode %d is sent %v items/s, it carries %v", u.Mode, u.Rate,
				mode.Rate())
		}
		all := u.Rate * float64(u.Count)
		rate += all
		cost += all * p.pricePerItem(mode)
		worst = max(worst, mode.WorstLatency(u.Rate))
	}
	if math.Abs(rate-m.Rate) > sumTolerance*max(m.Rate, sumTolerance) {
		return 0, 0, fmt.Errorf("%v items/s are carried, %v arrive", rate, m.Rate)
	}
	return cost, worst, nil
}
