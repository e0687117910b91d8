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
