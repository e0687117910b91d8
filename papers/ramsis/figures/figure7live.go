package ramsis

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figure7Live is the implementation of §7.3.1: the data plane with 60 workers, 30 s of real time under each constant
// load. Only one run uses the machine at a time, so that none slows another down.
func figure7Live(run *runner) error {
	s, err := systems.Get("ramsis")
	if err != nil {
		return err
	}
	w, err := run.environment(a4Setup)
	if err != nil {
		return err
	}
	var turn sync.Mutex
	type pair struct{ simulated, live *runs }
	var all []pair
	for _, rate := range run.rates {
		on, err := run.constantLoad(rate)
		if err != nil {
			return err
		}
		simulated, err := run.simulationTask(a4Setup, s, on)
		if err != nil {
			return err
		}
		j := newJob(w, s, on)
		// Weight 0 makes these tasks the last ones, when nothing else runs.
		live := run.AddTask(fmt.Sprintf("%s, live, %s", s.Name, on.name), 0, 1,
			func(ctx context.Context, seed uint64) (any,
				error) {
				turn.Lock()
				defer turn.Unlock()
				return j.runLive(ctx, a4Setup, seed)
			})
		all = append(all, pair{simulated, &runs{live}})
	}
	run.Report(func(o *reproduce.Outcome) error {
		for n, p := range all {
			setting := map[string]string{"workers": fmt.Sprint(a4Setup.workers),
				"load": formatNumber(run.rates[n])}
			promise := p.simulated.result(0).promise
			if promise != nil && promise.Violation >= 0 {
				addRow(o, row("7L", s.Name, "accuracy, promised", "%", setting), 100*promise.Accuracy)
			}
			addRow(o, row("7L", s.Name, "accuracy, simulated", "%", setting), p.simulated.each(accuracy)...)
			addRow(o, row("7L", s.Name, "accuracy, live", "%", setting), p.live.each(accuracy)...)
			if promise != nil && promise.Violation >= 0 {
				addRow(o, row("7L", s.Name, "violations, promised", "%", setting), 100*promise.Violation)
			}
			addRow(o, row("7L", s.Name, "violations, simulated", "%", setting), p.simulated.each(violations)...)
			addRow(o, row("7L", s.Name, "violations, live", "%", setting), p.live.each(violations)...)
			addRow(o, row("7L", s.Name, "batches over profile, live", "ms", setting),
				p.live.each(func(r *result) float64 {
					return 1e3 * r.late.Seconds()
				})...)
		}
		return nil
	})
	return nil
}
