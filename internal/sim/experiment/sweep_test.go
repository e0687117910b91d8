package experiment

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// Every index is done once, with no more calls at the same time than allowed. The first error ends the sweep.
func TestSweep(t *testing.T) {
	for _, parallel := range []int{1, 3, 100} {
		done := make([]int, 50)
		var now, most atomic.Int64
		last := 0
		err := Sweep(context.Background(), len(done), parallel, func(ended, of int) {
			last = ended
		}, func(_ context.Context, i int) error {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			done[i]++
			now.Add(-1)
			return nil
		})
		if err != nil || last != len(done) || most.Load() > int64(parallel) {
			t.Errorf("parallel %d: %v, %d reported, %d at once", parallel, err, last, most.Load())
		}
		for i, n := range done {
			if n != 1 {
				t.Errorf("parallel %d: %d was done %d times", parallel, i, n)
			}
		}
	}
	broken := errors.New("broken")
	ran := 0
	err := Sweep(context.Background(), 50, 1, nil, func(_ context.Context, i int) error {
		ran++
		if i == 7 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || ran != 8 {
		t.Errorf("%v after %d", err, ran)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := Sweep(ctx, 3, 1, nil, func(context.Context, int) error {
		return nil
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended before it began: %v", err)
	}
}
