package dataplane_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

func staged(t testing.TB, stages []serving.Stage, run func(context.Context, *dataplane.Batch) error, slo time.Duration,
	limit int, c dataplane.Config) *dataplane.Plane {
	t.Helper()
	w := simtest.Staged(stages, 1, time.Millisecond, time.Millisecond, slo, limit)
	s, err := systems.Get("sluice")
	if err != nil {
		t.Fatal(err)
	}
	c.Spec, c.Initial = w.Spec, w.Plan
	if c.Engine, err = s.Engine(w.Spec, w.Profile, w.Planner.Provides()); err != nil {
		t.Fatal(err)
	}
	c.Backend = func(serving.WorkerID) dataplane.Backend { return &runtime{run: run} }
	p, err := dataplane.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func chain() []serving.Stage {
	return []serving.Stage{{Name: "find", Next: []serving.Edge{{To: 1, FanOut: 2, Rows: "found"}}}, {Name: "read"}}
}

// finds is a runtime whose first stage finds as many things in an item as its byte says.
func finds(second func(*dataplane.Batch) error) func(context.Context, *dataplane.Batch) error {
	return func(_ context.Context, b *dataplane.Batch) error {
		if b.Variant == 1 {
			return second(b)
		}
		for k := range b.Portions {
			rows := []uint64{}
			for _, n := range b.Portions[k].Inputs[0].Data {
				rows = append(rows, make([]uint64, n)...)
			}
			b.Portions[k].Outputs = []tensor.Tensor{values("found", rows)}
		}
		return nil
	}
}

func holding(n byte) *dataplane.Request {
	r := one()
	r.Inputs[0].Data = []byte{n}
	return r
}

// A query that is dropped at its second stage is held no longer, though a batch with another query runs there.
func TestDroppedOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := staged(t, chain(), finds(func(b *dataplane.Batch) error {
			<-release
			return echo(t.Context(), b)
		}), 200*time.Millisecond, 2, dataplane.Config{})
		first, second := make(chan error, 1), make(chan error, 1)
		p.Submit(holding(2), func(_ *dataplane.Response, err error) { first <- err })
		time.Sleep(20 * time.Millisecond)
		p.Submit(holding(3), func(_ *dataplane.Response, err error) { second <- err })
		time.Sleep(20 * time.Millisecond)
		if calls, jobs := p.Held(); calls != 2 || jobs != 1 {
			t.Errorf("%d queries and %d batches, want both queries, one of them running", calls, jobs)
		}
		if err := <-second; outcome(err) != serving.Dropped {
			t.Errorf("%v, want it dropped", err)
		}
		if calls, jobs := p.Held(); calls != 1 || jobs != 1 {
			t.Errorf("%d queries and %d batches are held, want one of each", calls, jobs)
		}
		close(release)
		<-first
		if calls, jobs := p.Held(); calls != 0 || jobs != 0 {
			t.Errorf("%d queries and %d batches are held, and all is over", calls, jobs)
		}
		p.Close()
	})
}

// A query whose stage gives what cannot be handed on fails alone: those that shared its batch run again without it.
func TestWrongOutputsFailTheirQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var batches atomic.Int32
		p := staged(t, chain(), func(ctx context.Context, b *dataplane.Batch) error {
			if b.Variant == 0 && len(b.Portions) > 1 {
				batches.Add(1)
			}
			time.Sleep(5 * time.Millisecond) // so that the others gather meanwhile
			return finds(func(b *dataplane.Batch) error { return echo(ctx, b) })(ctx, b)
		}, time.Second, 8, dataplane.Config{Rows: 20})
		answers := make(chan error, 5)
		for _, n := range []byte{1, 2, 21, 20, 0} {
			p.Submit(holding(n), func(r *dataplane.Response, err error) {
				switch {
				case n == 21:
					if outcome(err) != serving.Failed ||
						!strings.Contains(err.Error(), `21 rows for "read", of one query at most 20 are taken`) {
						t.Errorf("%v", err)
					}
				case err != nil:
					t.Errorf("%d rows: %v", n, err)
				case n > 0 && r.Outputs[0].Shape[0] != int64(n):
					t.Errorf("%d rows: answered %v", n, r.Outputs[0].Shape)
				}
				answers <- err
			})
		}
		for range 5 {
			<-answers
		}
		if batches.Load() == 0 {
			t.Error("no queries shared a batch")
		}
		p.Close()
	})
}

// An answer tells of every stage what its batch was and how long the query waited and ran there, if asked.
func TestTimings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := staged(t, chain(), func(ctx context.Context, b *dataplane.Batch) error {
			time.Sleep(time.Duration(b.Variant+1) * 10 * time.Millisecond)
			return finds(func(b *dataplane.Batch) error { return echo(ctx, b) })(ctx, b)
		}, time.Second, 2, dataplane.Config{})
		r := holding(3)
		r.Timings = true
		a, err := p.Infer(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		ms := time.Millisecond
		// Three things found, read in two batches one after the other.
		want := []dataplane.StageTime{
			{Stage: "find", Variant: "find", Items: 1, Batch: 1, Run: 10 * ms}, {
				Stage: "read", Variant: "read", Items: 3, Batch: 1, Ready: 10 * ms, Queue: 20 * ms, Run: 20 * ms,
			},
		}
		if !slices.Equal(a.Stages, want) {
			t.Errorf("%+v, want %+v", a.Stages, want)
		}
		r = holding(0)
		r.Timings = true
		if a, err = p.Infer(t.Context(), r); err != nil || len(a.Stages) != 1 {
			t.Errorf("%+v, %v: the second stage was passed over", a, err)
		}
		if a, err := p.Infer(t.Context(), holding(1)); err != nil || a.Stages != nil {
			t.Errorf("%+v, %v: nobody asked for timings", a, err)
		}
		p.Close()
	})
}

// Stages that do not wait for each other run at the same time.
func TestBranchesRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := []serving.Edge{{To: 3, FanOut: 1}}
		p := staged(t, []serving.Stage{
			{Name: "a", Next: []serving.Edge{{To: 1, FanOut: 1}, {To: 2, FanOut: 1}}}, {Name: "b", Next: one},
			{Name: "c", Next: one}, {Name: "d"},
		},
			func(ctx context.Context, b *dataplane.Batch) error {
				time.Sleep(time.Second)
				return echo(ctx, b)
			}, time.Minute, 1, dataplane.Config{})
		begun := time.Now()
		if _, err := p.Infer(t.Context(), holding(1)); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("took %v, want one second for each of the three steps", took)
		}
		p.Close()
	})
}
