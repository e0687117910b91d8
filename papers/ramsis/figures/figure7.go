package ramsis

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/policy/plan"
)

// promised are the quantities that policies promise.
var promised = []struct {
	name string
	of   func(*plan.Promise) float64
	seen func(*result) float64
}{
	{"accuracy", func(p *plan.Promise) float64 { return 100 * p.Accuracy }, accuracy},
	{"violations", func(p *plan.Promise) float64 { return 100 * p.Violation }, violations},
}

// promise returns a number of what the policy of runs promises; none without a promise.
func promise(of runs, number func(*plan.Promise) float64) reproduce.Values {
	return func() []float64 {
		if p := of.First().promise; p != nil && p.Violation >= 0 {
			return []float64{number(p)}
		}
		return nil
	}
}

// figure7 compares the promises of policies (§5.1) with simulation, under constant load with 40, 60 and 80 workers
// (§7.3.1). It shows every system whose policies make promises.
func figure7(run *runner, f *reproduce.Sheet) error {
	var all []series
	for _, workers := range []int{40, 60, 80} {
		at := a4Setup
		at.workers = workers
		all = append(all, run.along(run.byLoad(), fmt.Sprint(workers, " workers"), at))
	}
	for i, s := range run.systems {
		c := f.Chart("7-"+s.Name, "RAMSIS, Figure 7: "+s.Name+", promised and simulated", len(all))
		var below []*reproduce.Panel
		for _, x := range all {
			up, down := upAndDown(x.name, x.axis.label)
			c.Add(up)
			below = append(below, down)
			for _, p := range x.points {
				at := f.At("workers", x.at.workers, "load", p.x)
				for k, q := range promised {
					says := promise(p.systems[i], q.of)
					seen := p.systems[i].Each(q.seen).Where(says)
					at.Row(s.Name, q.name+", promised", "%", says)
					at.Row(s.Name, q.name+", simulated", "%", seen)
					panel := []*reproduce.Panel{up, down}[k]
					panel.Point("promised", p.x, says)
					panel.Point("simulated", p.x, seen)
				}
			}
		}
		c.Add(below...)
	}
	return nil
}

// figure7Live is the implementation of §7.3.1: the data plane with 60 workers, 30 s of real time under each constant
// load. Only one run uses the machine at a time, so that none slows another down.
func figure7Live(run *runner, f *reproduce.Sheet) error {
	s := reproduce.System("ramsis")
	var turn sync.Mutex
	for _, rate := range run.rates {
		on := run.constantLoad(rate)
		simulated := run.simulation(a4Setup, s, on)
		// Weight 0 makes these tasks the last ones, when nothing else runs.
		live := reproduce.Add(run.Runner, fmt.Sprintf("%s, live, %s", s.Name, on.name), 0, 1,
			func(ctx context.Context, seed uint64) (*result, error) {
				turn.Lock()
				defer turn.Unlock()
				j, err := run.job(a4Setup, s, on)
				if err != nil {
					return nil, err
				}
				return j.runLive(ctx, a4Setup, seed)
			})
		at := f.At("workers", a4Setup.workers, "load", rate)
		for _, q := range promised {
			at.Row(s.Name, q.name+", promised", "%", promise(simulated, q.of))
			at.Row(s.Name, q.name+", simulated", "%", simulated.Each(q.seen))
			at.Row(s.Name, q.name+", live", "%", live.Each(q.seen))
		}
		at.Row(s.Name, "batches over profile, live", "ms",
			live.Each(func(r *result) float64 { return 1e3 * r.late.Seconds() }))
	}
	return nil
}
