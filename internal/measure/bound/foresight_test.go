package bound

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

func foresight(t *testing.T, w Model, queries []Query) float64 {
	t.Helper()
	r, err := Utility(context.Background(), solver(t), w, queries, Options{Foresight: true})
	if err != nil {
		t.Fatal(err)
	}
	return r.Utility
}

// 10 ms + 1 ms an item within 20 ms: the fluid bound has batches of 10. At 2,000/s, seven queries come within the 3 ms
// that a batch of seven leaves, and of eight no more than that: 7/17 ms on two machines.
func TestForesightBatches(t *testing.T) {
	w := world{machines: []int{2}}
	a := w.app(20*ms, 1)
	w.variant(10*ms, ms, 1, 64, 0)
	got := foresight(t, w.world(), steady(a, 2000, 10*time.Second, 20*ms, 1))
	check(t, "utility", got, 2*7/0.017/2000, 2e-3)
}

// Two stages that take 5 ms + 1 ms an item on one machine, 20 ms for both. In the fluid bound each has batches of 15 in
// 20 ms. In truth the two batches of a query have ten items together. 5 at each take 20 ms: 250/s. Rounded to steps it
// is a little more.
func TestForesightSharesTime(t *testing.T) {
	w := world{machines: []int{1}}
	a := w.app(20*ms, 1)
	w.variant(5*ms, ms, 1, 64, 0)
	w.stage(a)
	w.variant(5*ms, ms, 1, 64, 0)
	w.spec.Stages[0].Next = []serving.Edge{{To: 1, FanOut: 1}}
	load := steady(a, 2000, time.Second, 20*ms, 1, 1)
	got := foresight(t, w.world(), load) * 2000
	if got < 249 || got > 270 {
		t.Errorf("%v queries/s, want 250 and a little more", got)
	}
	fluid, err := Utility(context.Background(), solver(t), w.world(), load, Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "the fluid bound's queries/s", fluid.Utility*2000, 375, 8) // time after the last arrival counts
}

// Clumps of four and queries that come alone: the small variant is needed only for these.
func TestForesightTellsClumpsApart(t *testing.T) {
	w := world{machines: []int{1}}
	a := w.app(10*ms, 1)
	w.variant(10*ms, 0, 1, 4, 0)
	var queries []Query
	for k := range 1000 {
		n := 1
		if k%10 == 0 {
			n = 4
		}
		for range n {
			at := serving.Time(time.Duration(k) * 5 * ms)
			queries = append(queries, Query{
				App: a, Arrived: at, Deadline: at.Add(10 * ms), Items: []float64{1}, Variant: serving.None,
			})
		}
	}
	// 200 of 500 batches in 5 s: the clumps of four take 1 s, and 400 lone queries the other four.
	check(t, "utility", foresight(t, w.world(), queries), (400+400.0)/1300, 0.01)
}

// No schedule of a few queries has more than the bound. All schedules are tried: each machine runs batches of queries
// that wait, or waits for the next one.
func TestForesightAgainstAllSchedules(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, seed))
	tight := 0
	for n := range 300 {
		w := world{machines: []int{1 + rng.IntN(2)}}
		a := w.app(time.Duration(5+rng.IntN(20))*ms, 1)
		for v := range 1 + rng.IntN(2) {
			base, each := time.Duration(1+rng.IntN(8))*ms, time.Duration(rng.IntN(4))*ms
			w.variant(base, each, 0.5+0.5*float64(v), 1+rng.IntN(3), 0)
		}
		var queries []Query
		at := serving.Time(0)
		for range 2 + rng.IntN(4) {
			at = at.Add(time.Duration(rng.IntN(6)) * ms)
			queries = append(queries, Query{
				App: a, Arrived: at, Deadline: at.Add(w.spec.Apps[a].SLO.Latency), Items: []float64{1},
				Variant: serving.None,
			})
		}
		m := w.world()
		got := foresight(t, m, queries)
		best := allSchedules(&w, &m, queries)
		if got < best-1e-6 {
			t.Errorf("case %d of seed %d: bound %v, a schedule has %v", n, seed, got, best)
		}
		if got < best+1e-6 {
			tight++
		}
	}
	t.Logf("%d of 300 bounds are reached", tight)
}

// allSchedules returns the highest utility of any schedule of an app with one stage on machines of one type.
func allSchedules(w *world, m *Model, queries []Query) float64 {
	best := m.Spec.BestAccuracy(0)
	free := make([]serving.Time, len(m.Spec.Workers))
	var try func(left uint) float64
	try = func(left uint) (most float64) {
		// The machine that is free first runs a batch of some of those left, as soon as all of them are there.
		k := 0
		for i := range free {
			if free[i] < free[k] {
				k = i
			}
		}
		was := free[k]
		for set := left; set > 0; set = (set - 1) & left {
			start, due, count := was, serving.Never, 0
			for i := range queries {
				if set>>i&1 == 1 {
					start, due, count = max(start, queries[i].Arrived), min(due, queries[i].Deadline), count+1
				}
			}
			for v := range w.base {
				end := start.Add(w.base[v] + time.Duration(count)*w.each[v])
				if count <= w.spec.Variants[v].MaxBatch && end <= due {
					free[k] = end
					most = max(most, float64(count)*w.spec.Variants[v].Accuracy/best+try(left&^set))
				}
			}
		}
		if free[k] = serving.Never; len(free) > 1 && was != serving.Never {
			most = max(most, try(left)) // it runs nothing more
		}
		free[k] = was
		return most
	}
	return try(1<<len(queries)-1) / math.Max(float64(len(queries)), 1)
}
