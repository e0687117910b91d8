package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/serving"
)

// A whole matching round: a step in which some batches end, as many queries arrive, and about as many queries as there
// are instances wait and are matched with all of them. ns/op is the time of the step.
func BenchmarkMatchingRound(b *testing.B) {
	for _, ends := range []int{1, 4} {
		b.Run(fmt.Sprintf("20x20/ends=%d", ends), func(b *testing.B) {
			const slo = 1500 * time.Millisecond
			c := simtest.Typed([]int{4, 6, 10}, [][2]time.Duration{
				{5 * time.Millisecond, 256 * time.Microsecond}, {5 * time.Millisecond, 390 * time.Microsecond},
				{5 * time.Millisecond, 400 * time.Microsecond},
			}, slo, 1000)
			d := newDriver(b, c, "matching", "single")
			d.step(1)
			for _, x := range d.due {
				d.in = append(d.in, x.in)
			}
			d.due = d.due[:0]
			d.step(2)
			rng := rand.New(rand.NewPCG(1, 2))
			arrive := func(now serving.Time) {
				d.next++
				d.in = append(d.in, engine.Input{
					Kind: engine.QueryArrived, Query: serving.Query{
						ID: d.next, Arrived: now, Deadline: now.Add(slo), Items: 10 * (1 + rng.Int32N(60)),
						Variant: serving.None,
					},
				})
			}
			for range 40 {
				arrive(3)
			}
			d.step(3)
			if len(d.due) != 20 {
				b.Fatalf("%d instances run, want 20", len(d.due))
			}
			waiting, steps := 0, 0
			round := func() {
				now := d.now
				for range ends {
					at := 0
					for k := range d.due {
						if d.due[k].at < d.due[at].at {
							at = k
						}
					}
					now = max(now, d.due[at].at)
					d.in = append(d.in, d.due[at].in)
					d.due = slices.Delete(d.due, at, at+1)
				}
				for range ends {
					arrive(now)
				}
				engine.Sort(d.in)
				d.step(now)
				waiting += d.e.Fleet().Central(0).Len()
				steps++
			}
			for range 1000 {
				round()
			}
			waiting, steps = 0, 0
			b.ReportAllocs()
			for b.Loop() {
				round()
			}
			b.ReportMetric(float64(waiting)/float64(steps), "waiting")
		})
	}
}

// forked is a graph with a stage that finds three things in every item, one that is passed over, and a join of both.
func forked() *simtest.Cluster {
	return simtest.Staged([]serving.Stage{
		{Name: "find", Next: []serving.Edge{{To: 1, FanOut: 3}, {To: 2, FanOut: 0}}},
		{Name: "read", Next: []serving.Edge{{To: 3, FanOut: 1}}},
		{Name: "skip", Next: []serving.Edge{{To: 3, FanOut: 1}}},
		{Name: "sum"},
	}, 2, time.Millisecond, 100*time.Microsecond, 100*time.Millisecond, 16)
}

// A query on its way through a graph: seven tasks at three stages, and one stage passed over. ns/op is the time of all
// its steps.
func BenchmarkGraph(b *testing.B) {
	d := newDriver(b, forked(), "shortestqueue", "greedy")
	for range 10_000 {
		d.arrive(2_000_000, 100*time.Millisecond)
	}
	b.ReportAllocs()
	for b.Loop() {
		d.arrive(2_000_000, 100*time.Millisecond)
	}
}

// In the steady state a query allocates nothing on its way through a graph, with joins and stages that are passed over.
func TestGraphDoesNotAllocate(t *testing.T) {
	d := newDriver(t, forked(), "shortestqueue", "greedy")
	for range 20_000 {
		d.arrive(2_000_000, 100*time.Millisecond)
	}
	if n := testing.AllocsPerRun(2000, func() { d.arrive(2_000_000, 100*time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations for a query", n)
	}
	if d.e.Pending() > 20 {
		t.Errorf("%d queries are under way: the machines cannot keep up", d.e.Pending())
	}
}
