package experiment

import (
	"context"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// ViolationProbe returns a probe that simulates the case at a rate with the given number of queries. A query violates
// its objective when it is late or not served. A run ends early once its share of violations is certain to exceed
// giveUp, so that rates far too high cost no more than others. giveUp 0 never ends a run early.
func ViolationProbe(at func(rate *workload.Rate) *Case, queries int, giveUp float64) Probe {
	return func(ctx context.Context, rate float64, seed uint64) (int, int, error) {
		constant, err := workload.Constant(rate)
		if err != nil {
			return 0, 0, err
		}
		c := *at(constant)
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

// Violated reports whether a query was late or not served.
func Violated(o *report.Outcome) bool { return o.Outcome != serving.Served || o.Late() }

// StopWhen returns a source that ends as soon as over returns true. over is called before every arrival.
func StopWhen(s workload.Source, over func() bool) workload.Source { return &stoppable{s, over} }

// stoppable is the source of StopWhen.
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
