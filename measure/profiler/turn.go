package profiler

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
)

// maxTurnRuns is the most runs of one worker in one turn, so that quick models do not run hundreds of thousands of
// times.
const maxTurnRuns = 500

// turn adds samples to a point for about cfg.Turn. Each of the point's workers first makes one run that does not count,
// as the run before it affects its cost. Then it counts runs. Workers that are done continue without counting until the
// last one is done, so that every counted run has the full concurrency.
func (p *profiler) turn(ctx context.Context, q *point) error {
	s := q.subject
	b := s.batches[q.batch]
	if b == nil {
		var err error
		if b, err = s.source.batch(q.batch); err != nil {
			return err
		}
		s.batches[q.batch] = b
	}
	runs := p.runs(q)
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		warm, all  sync.WaitGroup
		unfinished atomic.Int32
		once       sync.Once
		failed     error
	)
	fail := func(err error) {
		once.Do(func() { failed = err })
		cancel()
	}
	samples := make([][]float64, q.concurrency)
	warm.Add(q.concurrency)
	unfinished.Store(int32(q.concurrency))
	start := time.Now()
	work := func(w int) {
		own := copyOf(b)
		err := s.runner.Run(ctx, own)
		warm.Done()
		if err != nil {
			fail(err)
			return
		}
		warm.Wait()
		for range runs {
			took, err := timed(ctx, s.runner, own)
			if err != nil {
				fail(err)
				return
			}
			samples[w] = append(samples[w], float64(took)/1e3)
		}
		unfinished.Add(-1)
		for unfinished.Load() > 0 && ctx.Err() == nil {
			if err := s.runner.Run(ctx, own); err != nil && ctx.Err() == nil {
				fail(err)
			}
		}
	}
	for w := 1; w < q.concurrency; w++ {
		all.Go(func() { work(w) })
	}
	work(0)
	all.Wait()
	if failed != nil {
		return failed
	}
	if err := outer.Err(); err != nil { // workers may have stopped early
		return err
	}
	q.spent += time.Since(start)
	for _, got := range samples {
		q.samples = append(q.samples, got...)
	}
	return nil
}

// timed returns how long a run took, at least a nanosecond, as 0 is no time that a profile may hold.
func timed(ctx context.Context, r dataplane.Runner, b *dataplane.Batch) (time.Duration, error) {
	start := time.Now()
	err := r.Run(ctx, b)
	return max(time.Since(start), 1), err
}

// runs returns how many runs a worker counts in the next turn: as many as fit by the mean so far, or one.
func (p *profiler) runs(q *point) int {
	n := len(q.samples)
	if n == 0 {
		return 1
	}
	mean, _ := moments(q.samples)
	fit := int(min(float64(p.cfg.Turn)/1e3/mean, maxTurnRuns))
	left := (p.cfg.MaxSamples - n + q.concurrency - 1) / q.concurrency
	return max(1, min(fit, left))
}
