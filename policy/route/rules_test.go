package route_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/ruletest"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
)

func TestRoundRobinTakesTurns(t *testing.T) {
	f := ruletest.Pool([]float64{1, 1, 1}, 8)
	o := route.NewRoundRobin()
	ruletest.Arrive(f, 1, 2)
	o.Route(ruletest.ViewOf(f))
	ruletest.Arrive(f, 3, 5)
	o.Route(ruletest.ViewOf(f))
	if got := ruletest.Lengths(f); !slices.Equal(got, []int{3, 2, 2}) {
		t.Errorf("7 queries in turns over 3 instances: %v", got)
	}
}

// Against a scan: every query goes to an instance with the fewest queries waiting or running.
func TestShortestQueueIsShortest(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	f := ruletest.Pool([]float64{1, 1, 1, 1, 1}, 8)
	o := route.NewShortestQueue()
	batch := serving.BatchID(0)
	for n := 1; n < 500; n++ {
		before := make(map[serving.InstanceID]int)
		least := 1 << 30
		for _, i := range f.Ready(0) {
			before[i.ID()] = i.Outstanding()
			least = min(least, i.Outstanding())
		}
		ruletest.Arrive(f, n, 1)
		o.Route(ruletest.ViewOf(f))
		for _, i := range f.Ready(0) {
			if i.Outstanding() > before[i.ID()] && before[i.ID()] != least {
				t.Fatalf("query %d went to an instance with %d queries, the shortest had %d", n, before[i.ID()], least)
			}
		}
		// Random progress: some instance starts or ends a batch.
		i := f.Ready(0)[rng.IntN(5)]
		if i.Running() > 0 {
			b, _ := f.Finish(i, i.Batch(0).ID, 0)
			for r := b.Head; r != fleet.Nil; {
				next := f.Next(r)
				f.Release(r)
				r = next
			}
		} else if i.Queue().Len() > 0 {
			batch++
			f.Start(i, batch, 0, 1+rng.IntN(i.Queue().Len()), 0, time.Millisecond)
		}
	}
}

// Idle instances of the preferred device type come first. An instance takes no more than the batch that it fills.
func TestFCFSPrefersAndFills(t *testing.T) {
	f := ruletest.Pool([]float64{1, 1}, 2)
	f.Spec().DeviceTypes = append(f.Spec().DeviceTypes, serving.DeviceType{Name: "base"})
	f.Warm(f.Launch(fleet.Placement{
		Key: fleet.Key{Ordinal: 2}, DeviceType: 1, Terms: fleet.Terms{Slots: 1, Share: 1},
		Variants: []fleet.Loaded{{Limit: 2, Wanted: true}},
	}, 0), 0)
	o := route.NewFCFS()
	v := ruletest.ViewWith(f, 0, &plan.Plan{Prefer: []serving.DeviceTypeID{1, 0}}, monitor.NewRates(1))
	ruletest.Arrive(f, 1, 3)
	o.Route(v)
	if got := ruletest.Lengths(f); !slices.Equal(got, []int{1, 0, 2}) {
		t.Errorf("3 queries, batches of 2, the third instance preferred: %v", got)
	}
	ruletest.Arrive(f, 4, 5)
	o.Route(v)
	if got := ruletest.Lengths(f); !slices.Equal(got, []int{2, 2, 2}) || f.Central(0).Len() != 2 {
		t.Errorf("8 queries for 6 places: %v and %d wait, want 2 2 2 and 2", got, f.Central(0).Len())
	}
	f.Start(f.Ready(0)[0], 1, 0, 2, 0, time.Millisecond)
	o.Route(v)
	if f.Central(0).Len() != 2 {
		t.Errorf("an instance without a free slot was given a query")
	}
}

// CLKWRK (Kairos §7), against an independent computation of when every instance would end the query: the rule takes the
// first, so a query is late only if it would be late on every instance.
func TestEarliestFinishAgainstBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	f := ruletest.Pool([]float64{1, 1, 1, 1}, 1)
	now := serving.Time(0)
	batch := serving.BatchID(0)
	for n := 1; n < 400; n++ {
		now += serving.Time(rng.IntN(2000)) * 1000
		for _, i := range f.Ready(0) { // run what can run: one query at a time, 2 ms each
			for i.Running() > 0 && i.Batch(0).Expected <= now {
				end := i.Batch(0).Expected
				b, _ := f.Finish(i, i.Batch(0).ID, end)
				f.Release(b.Head)
				if i.Queue().Len() > 0 {
					batch++
					f.Start(i, batch, 0, 1, end, 2*time.Millisecond)
				}
			}
			if i.Running() == 0 && i.Queue().Len() > 0 {
				batch++
				f.Start(i, batch, 0, 1, now, 2*time.Millisecond)
			}
		}
		best, first := serving.Never, serving.InstanceID(0)
		for _, i := range f.Ready(0) {
			end := now
			if i.Running() > 0 {
				end = i.Batch(0).Expected
			}
			end += serving.Time(i.Queue().Len()+1) * 2e6
			if end < best {
				best, first = end, i.ID()
			}
		}
		before := f.Instance(first).Queue().Len()
		ruletest.Arrive(f, n, 1)
		route.NewEarliestFinish().Route(ruletest.ViewAt(f, now))
		if f.Instance(first).Queue().Len() != before+1 {
			t.Fatalf("query %d did not go to instance %d, where it ends first", n, first)
		}
	}
}
