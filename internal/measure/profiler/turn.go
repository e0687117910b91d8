package profiler

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
)

// longestPause is the longest wait before a run. A longer one leaves little more asleep or out of the caches.
const longestPause = 50 * time.Millisecond

// pause waits as a machine does that Poisson arrivals keep half busy: every other run follows the one before it at
// once, and the others find the machine idle for an exponential time, whose mean is twice that of a run. lately is how
// long the run before took.
func (p *profiler) pause(ctx context.Context, lately time.Duration) error {
	if p.rng.Float64() < 0.5 {
		return nil
	}
	timer := time.NewTimer(min(time.Duration(p.rng.ExpFloat64()*2*float64(lately)), longestPause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// turn adds a sample of each of the point's workers, which start at the same time. Before the point's first samples
// they make a run that does not count. Workers that are done continue without counting until the last one is done, so
// that every counted run has the full concurrency.
func (p *profiler) turn(ctx context.Context, q *point) error {
	start := time.Now()
	if err := p.pause(ctx, p.lately); err != nil {
		return err
	}
	s := q.subject
	b, err := q.batchFor()
	if err != nil {
		return err
	}
	first := len(q.samples) == 0
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
	samples := make([]time.Duration, q.concurrency)
	warm.Add(q.concurrency)
	unfinished.Store(int32(q.concurrency))
	work := func(w int) {
		own := copyOf(b)
		if first {
			if err := s.runner.Run(ctx, own); err != nil {
				warm.Done()
				fail(err)
				return
			}
		}
		warm.Done()
		warm.Wait()
		took, err := timed(ctx, s.runner, own)
		if err != nil {
			fail(err)
			return
		}
		samples[w] = took
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
	p.lately = slices.Max(samples)
	for _, took := range samples {
		q.samples = append(q.samples, float64(took)/1e3)
	}
	return nil
}

// timed returns how long a run took, at least a nanosecond, as 0 is no time that a profile may hold.
func timed(ctx context.Context, r dataplane.Runner, b *dataplane.Batch) (time.Duration, error) {
	start := time.Now()
	err := r.Run(ctx, b)
	return max(time.Since(start), 1), err
}
