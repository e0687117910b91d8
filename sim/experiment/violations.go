package experiment

import (
	"context"

	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/serving"
)

// ViolationProbe makes a Probe of cases: at returns the case of a rate, of which so many queries run. A query violates that
// is not answered, or not in time. A run ends early once the share that violates is certain to be above giveUp; 0 never
// ends one: rates far too high then cost no more than others.
func ViolationProbe(at func(rate float64) *Case, queries int, giveUp float64) Probe {
	return func(ctx context.Context, rate float64, seed uint64) (int, int, error) {
		c := *at(rate)
		c.NoReport = true
		violations, most := 0, queries
		if giveUp > 0 {
			most = int(giveUp * float64(queries))
		}
		observe, source := c.OnOutcome, c.Source
		c.OnOutcome = func(o *report.Outcome) {
			if Violated(o) {
				violations++
			}
			if observe != nil {
				observe(o)
			}
		}
		c.Source = func(seed uint64) workload.Source {
			return StopWhen(workload.Limit(source(seed), serving.Never, int64(queries)), func() bool {
				return violations > most
			})
		}
		if _, err := c.Run(ctx, seed); err != nil {
			return 0, 0, err
		}
		return violations, queries, ctx.Err()
	}
}

// Violated tells whether a query was not answered, or not in time.
func Violated(o *report.Outcome) bool { return o.Outcome != serving.Served || o.Late() }

// StopWhen ends a source when something is over.
func StopWhen(s workload.Source, over func() bool) workload.Source { return &stoppable{s, over} }

// stoppable is a source that ends when something is over.
type stoppable struct {
	workload.Source
	over func() bool
}

// Next implements workload.Source.
func (e *stoppable) Next() (workload.Arrival, bool) {
	if e.over() {
		return workload.Arrival{}, false
	}
	return e.Source.Next()
}
