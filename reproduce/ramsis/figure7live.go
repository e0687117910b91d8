package ramsis

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/systems"
)

// figure7Live is the third leg of §7.3.1, the implementation: 60 workers under each constant load for 30 s of real
// time. Runs take the machine in turn, so that none slows another down.
func figure7Live(l *lab) error {
	s, err := systems.Get("ramsis")
	if err != nil {
		return err
	}
	w, err := l.world(a4)
	if err != nil {
		return err
	}
	var turn sync.Mutex
	type pair struct{ simulated, live *runs }
	var all []pair
	for _, rate := range constantLoads() {
		on, err := l.constant(rate)
		if err != nil {
			return err
		}
		simulated, err := l.want(a4, s, on)
		if err != nil {
			return err
		}
		j := newJob(w, s, on)
		// The lightest of all: they come last, when nothing else runs.
		live := l.AddTask(fmt.Sprintf("%s, live, %s", s.Name, on.name), 0, 1, func(ctx context.Context, seed uint64) (any,
			error) {
			turn.Lock()
			defer turn.Unlock()
			return j.live(ctx, a4, seed)
		})
		all = append(all, pair{simulated, &runs{live}})
	}
	l.Report(func(o *reproduce.Outcome) error {
		for n, p := range all {
			setting := map[string]string{"workers": fmt.Sprint(a4.workers), "load": name(constantLoads()[n])}
			promise := p.simulated.of(0).promise
			if promise != nil && promise.Violation >= 0 {
				add(o, row("7L", s.Name, "accuracy, promised", "%", setting), 100*promise.Accuracy)
			}
			add(o, row("7L", s.Name, "accuracy, simulated", "%", setting), p.simulated.each(accuracy)...)
			add(o, row("7L", s.Name, "accuracy, live", "%", setting), p.live.each(accuracy)...)
			if promise != nil && promise.Violation >= 0 {
				add(o, row("7L", s.Name, "violations, promised", "%", setting), 100*promise.Violation)
			}
			add(o, row("7L", s.Name, "violations, simulated", "%", setting), p.simulated.each(violations)...)
			add(o, row("7L", s.Name, "violations, live", "%", setting), p.live.each(violations)...)
			add(o, row("7L", s.Name, "batches over profile, live", "ms", setting), p.live.each(func(r *result) float64 {
				return 1e3 * r.late.Seconds()
			})...)
		}
		return nil
	})
	return nil
}
