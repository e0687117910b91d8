package dataplane_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
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
		for k := range 17 {
			all.Go(func() {
				if a, err := p.Infer(t.Context(), one()); err != nil || a.BatchSize > fits {
					t.Errorf("answer %+v, error %v", a, err)
				}
			})
			if k == 0 {
				synctest.Wait() // it runs alone
			}
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

// Whatever the system, no query fails for lack of memory, and few batches are too large.
func TestEverySystemKeepsWithinMemory(t *testing.T) {
	const fits, queries = 3, 40
	w := simtest.Uniform(2, time.Millisecond, time.Millisecond, time.Minute, 16)
	tried := 0
	for _, name := range systems.Names() {
		s, err := systems.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.Engine(w.Spec, w.Profile, w.Planner.Provides())
		if err != nil {
			continue // it needs more of a plan
		}
		tried++
		synctest.Test(t, func(t *testing.T) {
			var tooLarge atomic.Int32
			r := &runtime{run: func(ctx context.Context, b *dataplane.Batch) error {
				time.Sleep(time.Millisecond)
				if b.Items > fits {
					tooLarge.Add(1)
					return dataplane.ErrOutOfMemory
				}
				return echo(ctx, b)
			}}
			p, err := dataplane.New(dataplane.Config{
				Spec: w.Spec, Initial: w.Plan, Engine: e,
				Backend: func(serving.WorkerID) dataplane.Backend { return r },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			var all sync.WaitGroup
			for range queries {
				all.Go(func() {
					if _, err := p.Infer(t.Context(), one()); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			all.Wait()
			// 16, 8 and 4 items are too many. Both machines may run such a batch before the limit is known.
			if n := tooLarge.Load(); n > 2*3 {
				t.Errorf("%s: %d batches were too large", name, n)
			}
		})
	}
	if tried < 10 {
		t.Errorf("%d systems were tried: does this test still build them?", tried)
	}
}
