package experiment

import (
	"context"
	"sync"
)

// Sweep calls do for 0 to n-1, at most parallel calls at the same time. do must write its result to a place of its own,
// by index, so that the outcome does not depend on the order of calls. progress, which may be nil, gets the number of
// calls that have ended. The first error ends the sweep and is returned.
func Sweep(ctx context.Context, n, parallel int, progress func(ended, of int),
	do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu    sync.Mutex
		next  int
		ended int
		first error
		wg    sync.WaitGroup
	)
	for range min(max(parallel, 1), n) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := i >= n || first != nil || ctx.Err() != nil
				mu.Unlock()
				if stop {
					return
				}
				err := do(ctx, i)
				mu.Lock()
				ended++
				if err != nil && first == nil {
					first = err
					cancel()
				}
				if progress != nil {
					progress(ended, n)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if first == nil {
		first = context.Cause(ctx)
		if ended == n {
			first = nil
		}
	}
	return first
}
