package dataplane_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
)

// A machine that lacks memory for large batches serves all queries all the same, in smaller ones, and says so once for
// each limit.
func TestLacksMemoryForLargeBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const fits = 2
		var mu sync.Mutex
		var sizes []int
		var said []string
		first := make(chan struct{})
		r := &runtime{run: func(ctx context.Context, b *dataplane.Batch) error {
			mu.Lock()
			sizes = append(sizes, b.Items)
			one := len(sizes) == 1
			mu.Unlock()
			if one {
				<-first // the others gather behind it
			}
			if b.Items > fits {
				return fmt.Errorf("a device: %w", dataplane.ErrOutOfMemory)
			}
			return echo(ctx, b)
		}}
		p := plane(t, r, time.Hour, dataplane.Config{Trouble: func(err error) {
			mu.Lock()
			said = append(said, err.Error())
			mu.Unlock()
		}})
		defer p.Close()
		var all sync.WaitGroup
		for range 17 {
			all.Go(func() {
				if a, err := p.Infer(t.Context(), one()); err != nil || a.BatchSize > fits {
					t.Errorf("answer %+v, error %v", a, err)
				}
			})
		}
		synctest.Wait()
		close(first)
		all.Wait()
		mu.Lock()
		defer mu.Unlock()
		tooLarge := 0
		for _, n := range sizes {
			if n > fits {
				tooLarge++
			}
		}
		if tooLarge != 2 { // 8, then 4
			t.Errorf("%d batches were too large, want 2: sizes %v", tooLarge, sizes)
		}
		if len(said) != 2 || !strings.Contains(said[1], "2 items at most") ||
			!strings.Contains(said[0], `device type "cpu"`) || !strings.Contains(said[0], `variant "model"`) {
			t.Errorf("said %q", said)
		}
	})
}
