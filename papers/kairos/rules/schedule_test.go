package rules

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/ruletest"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// Kairos's Figure 5: all four are in time, as with Matching.
func TestScheduleFigure5(t *testing.T) {
	f := mixedFleet(linear{{10 * ms, ms / 10}, {10 * ms, ms}}, []int{1, 1}, 100*ms, serving.ServeLate)
	if n := run(f, NewSchedule(), 100*ms, [][2]int{{0, 50}, {0, 400}, {30, 60}, {35, 500}}); n != 4 {
		t.Errorf("%d of 4 in time", n)
	}
}

// Queries behind the first one count: to serve the cheapest first makes the large one late, which would be in time as
// the first.
func TestScheduleSeesWhatWaits(t *testing.T) {
	queries := [][2]int{{0, 10}, {5, 810}, {6, 10}}
	for _, c := range []struct {
		router route.Router
		want   int
	}{{NewSchedule(), 3}, {NewMatching(1), 2}} {
		f := mixedFleet(linear{{10 * ms, ms / 10}}, []int{1}, 107*ms, serving.ServeLate)
		if n := run(f, c.router, 107*ms, queries); n != c.want {
			t.Errorf("%s: %d of 3 in time, want %d", c.router.Name(), n, c.want)
		}
	}
}

// There is room for either one large query or three small ones.
func TestScheduleLeavesOutTheLargest(t *testing.T) {
	f := mixedFleet(linear{{0, ms / 10}}, []int{1}, 100*ms, serving.ServeLate)
	for q, items := range []int{900, 300, 300, 300} {
		ruletest.AddWaiting(f, q+1, items, serving.Time(100*ms)+serving.Time(q))
	}
	NewSchedule().Route(ruletest.ViewOf(f))
	if got := queued(f); !sameQueues(got, []int{2}) {
		t.Errorf("%v, want the first small one", got)
	}
	// Priority comes before size.
	f = mixedFleet(linear{{0, ms / 10}}, []int{1}, 100*ms, serving.ServeLate)
	for q, items := range []int{900, 300, 300, 300} {
		r := f.Add(&fleet.Work{
			Query: serving.QueryID(q + 1), Items: int32(items), Pin: serving.None, Deadline: serving.Time(100*ms) +
				serving.Time(q), Priority: int32(max(1-q, 0)),
		})
		f.Wait(r)
	}
	NewSchedule().Route(ruletest.ViewOf(f))
	if got := queued(f); !sameQueues(got, []int{1}) {
		t.Errorf("%v, want the large one, which has priority", got)
	}
}

// A large query that only the first instance serves in time displaces a small one that the other instance can take as
// well.
func TestScheduleMakesRoom(t *testing.T) {
	beliefs := linear{{0, ms / 10}, {0, ms}}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := mixedFleet(beliefs, []int{1, 1}, 100*ms, serving.ServeLate)
		small := 60 + rng.IntN(30) // 6 to 9 ms on the first, 60 to 90 ms on the second
		ruletest.AddWaiting(f, 1, small, serving.Time(100*ms))
		ruletest.AddWaiting(f, 2, 950, serving.Time(100*ms)+1)
		NewSchedule().Route(ruletest.ViewOf(f))
		if got := queued(f); !sameQueues(got, []int{2}, []int{1}) {
			t.Errorf("small query of %d items: %v, want it on the second", small, got)
		}
	}
}

// Types are compared by the plan's marginal rates where it has them.
func TestScheduleUsesMarginalRates(t *testing.T) {
	for _, c := range []struct {
		plan *plan.Plan
		want [][]int
	}{
		{nil, [][]int{{1}, nil}}, // C_j: 20 ms on the first, 0.2 of 120 ms on the second
		{&plan.Plan{MarginalRates: [][]float64{nil}}, [][]int{{1}, nil}},
		{&plan.Plan{MarginalRates: [][]float64{{0, 0}}}, [][]int{{1}, nil}},
		{&plan.Plan{MarginalRates: [][]float64{{10, 1}}}, [][]int{nil, {1}}},
		{&plan.Plan{MarginalRates: [][]float64{{10, 2}}}, [][]int{{1}, nil}},
	} {
		f := mixedFleet(linear{{0, 200 * time.Microsecond}, {20 * ms, ms}}, []int{1, 1}, 500*ms, serving.ServeLate)
		ruletest.AddWaiting(f, 1, 100, serving.Time(500*ms))
		NewSchedule().Route(ruletest.ViewWith(f, 0, c.plan, monitor.NewRates(1)))
		if got := queued(f); !sameQueues(got, c.want...) {
			t.Errorf("%+v: %v, want %v", c.plan, got, c.want)
		}
	}
}

// Late queries wait until half of the instances are idle and no other query waits. Very late ones wait only for other
// queries.
func TestScheduleServesLateInTheBackground(t *testing.T) {
	slo := 100 * ms
	for _, c := range []struct {
		now      time.Duration
		runUntil int
		other    bool
		want     int // queries that are assigned
	}{
		{150 * ms, 1, false, 1}, {150 * ms, 2, false, 1}, {150 * ms, 3, false, 0}, {11 * time.Second, 3, false, 1},
		{11 * time.Second, 3, true, 1}, {150 * ms, 1, true, 1}, {90 * ms, 1, false, 1}, {90 * ms, 3, false, 0},
	} {
		f := mixedFleet(linear{{0, ms / 10}}, []int{4}, slo, serving.ServeLate)
		for k := range c.runUntil {
			runUntil(f, f.Ready(0)[k], 100+k, c.now+50*ms)
		}
		late := ruletest.AddWaiting(f, 1, 500, serving.Time(slo))
		if c.other { // it is in time on a busy instance, too, but not all of these are
			for k := range 4 - c.runUntil + 1 {
				ruletest.AddWaiting(f, 2+k, 900, serving.Time(c.now+99*ms))
			}
		}
		NewSchedule().Route(ruletest.ViewAt(f, serving.Time(c.now)))
		began := -c.runUntil
		for _, i := range f.Ready(0) {
			began += i.Queue().Len() + i.Running()
		}
		if c.other {
			if f.Task(late).Place() != fleet.Central {
				t.Errorf("%+v: the late query began before the others", c)
			}
			continue
		}
		if began != c.want {
			t.Errorf("%+v: %d began", c, began)
		}
	}
}

// randomFleet is a fleet of up to three types with some busy instances, and waiting queries.
func randomFleet(rng *rand.Rand, queries int) *fleet.Fleet {
	var beliefs linear
	var counts []int
	for range 1 + rng.IntN(3) {
		beliefs = append(beliefs, [2]time.Duration{
			time.Duration(1+rng.IntN(20)) * ms, time.Duration(10+rng.IntN(1000)) * time.Microsecond,
		})
		counts = append(counts, rng.IntN(2))
	}
	counts[0]++
	f := mixedFleet(beliefs, counts, 300*ms, serving.ServeLate)
	for k, i := range f.Ready(0) {
		if k > 0 && rng.IntN(2) == 0 {
			runUntil(f, i, 1000+k, time.Duration(1+rng.IntN(100))*ms)
		}
	}
	for q := range queries {
		ruletest.AddWaiting(f, q+1, 1+rng.IntN(500), serving.Time(rng.Int64N(int64(300*ms))))
	}
	return f
}

// mostInTime is the most queries that can be in time, found by trying every instance for each; on an instance by
// deadline.
func mostInTime(f *fleet.Fleet, tasks []fleet.Task) int {
	at := make([]time.Duration, len(f.Ready(0)))
	for j, i := range f.Ready(0) {
		at[j] = f.Backlog(i, 0, 0)
	}
	var most func(q int) int
	most = func(q int) int {
		if q == len(tasks) {
			return 0
		}
		n := most(q + 1)
		for j, i := range f.Ready(0) {
			latencies := f.Fastest(i, &tasks[q])
			if at[j]+latencies <= tasks[q].Deadline().Sub(0) {
				at[j] += latencies
				n = max(n, 1+most(q+1))
				at[j] -= latencies
			}
		}
		return n
	}
	return most(0)
}

// Every query in the schedule is in time there, in the order of the queue. The schedule has nearly as many queries as
// any could have, and the first ones on free instances are assigned.
func TestScheduleAgainstBruteForce(t *testing.T) {
	all, best := 0, 0
	for seed := uint64(1); seed <= 400; seed++ {
		rng := rand.New(rand.NewPCG(seed, 9))
		f := randomFleet(rng, 1+rng.IntN(6))
		var tasks []fleet.Task
		for r := f.Central(0).Head(); r != fleet.Nil; r = f.Next(r) {
			tasks = append(tasks, *f.Task(r))
		}
		before := make([]float64, len(f.Ready(0)))
		free := make([]bool, len(before))
		for j, i := range f.Ready(0) {
			before[j], free[j] = float64(f.Backlog(i, 0, 0)), route.HasSpareSlot(i)
		}
		want := mostInTime(f, tasks)
		o := NewSchedule()
		o.Route(ruletest.ViewOf(f))
		s := o.Of(0)
		if len(s.queries) > len(tasks) {
			t.Fatalf("seed %d: %d queries take part of %d that wait", seed, len(s.queries), len(tasks))
		}
		placed, seen := 0, map[int32]bool{}
		for j := range s.seats {
			at, last := before[j], int32(-1)
			for q := s.seats[j].first; q != unplaced; q = s.queries[q].next {
				x := &s.queries[q]
				if at += s.takes(x, &s.seats[j]); at > x.left || q <= last || x.seat != int32(j) || seen[q] {
					t.Fatalf("seed %d: query %d on seat %d ends after %v of %v, comes after %d", seed, q, j, at, x.left,
						last)
				}
				seen[q], last = true, q
				placed++
			}
			if first := s.seats[j].first; first != unplaced &&
				free[j] != (f.Task(s.queries[first].ref).Place() == fleet.Queued) {
				t.Fatalf("seed %d: of seat %d, free %v, the first query has not begun, or has", seed, j, free[j])
			}
		}
		if placed > want {
			t.Fatalf("seed %d: %d queries in time, and no schedule has more than %d", seed, placed, want)
		}
		all, best = all+placed, best+want
	}
	t.Logf("%d queries in time of at most %d", all, best)
	if float64(all) < 0.99*float64(best) {
		t.Errorf("%d queries in time of at most %d, want 99 %%", all, best)
	}
}

// Under random loads it serves more queries in time than Matching; under each load nearly as many or more.
func TestScheduleAgainstMatching(t *testing.T) {
	ours, theirs := 0, 0
	for seed := uint64(1); seed <= 20; seed++ {
		rng := rand.New(rand.NewPCG(seed, 3))
		var queries [][2]int
		at := 0.0
		for range 400 {
			at += rng.ExpFloat64() * 19
			queries = append(queries, [2]int{int(at), 1 + rng.IntN(300) + rng.IntN(2)*rng.IntN(2)*rng.IntN(700)})
		}
		count := func(o route.Router) int {
			pool := mixedFleet(linear{{5 * ms, ms / 4}, {6 * ms, ms * 4 / 10}}, []int{1, 3}, 350*ms, serving.ServeLate)
			return run(pool,
				o, 350*ms, queries)
		}
		a, b := count(NewSchedule()), count(NewMatching(1))
		if a < b-4 {
			t.Errorf("seed %d: %d of 400 in time, matching has %d", seed, a, b)
		}
		ours, theirs = ours+a, theirs+b
	}
	t.Logf("late: %d of 8000, with matching %d", 8000-ours, 8000-theirs)
	if ours <= theirs {
		t.Errorf("%d in time, matching has %d", ours, theirs)
	}
}

// scheduleBench has half of the instances free, and as many waiting queries as take part; of some there is no room for
// all.
func scheduleBench(n int, slack time.Duration) (*scheduleStage, *route.View) {
	rng := rand.New(rand.NewPCG(7, 7))
	f := mixedFleet(linear{
		{20 * ms, ms / 5}, {60 * ms, ms * 6 / 10}, {30 * ms, ms},
	}, []int{n / 4, n / 4, n / 2}, 350*ms, serving.DropLate)
	for k, i := range f.Ready(0) {
		if k%2 == 0 {
			runUntil(f, i, 10000+k, time.Duration(1+rng.IntN(200))*ms)
		}
	}
	for q := range n {
		ruletest.AddWaiting(f, q+1, 10*(1+rng.IntN(100)), serving.Time(slack)+serving.Time(rng.IntN(200))*1e6)
	}
	o := NewSchedule()
	v := ruletest.ViewOf(f)
	o.Of(0).build(v)
	return o.Of(0), v
}

// A round allocates nothing once its memory has grown.
func TestScheduleAllocates(t *testing.T) {
	s, v := scheduleBench(20, 50*ms)
	if n := testing.AllocsPerRun(100, func() {
		s.findSeats(v)
		s.collect(v)
		s.placeAll()
	}); n != 0 {
		t.Errorf("%v allocations in a round, want none", n)
	}
}

// The cost of a decision, by instances and by whether all queries fit.
func BenchmarkSchedule(b *testing.B) {
	for _, n := range []int{20, 100, 400} {
		for name, slack := range map[string]time.Duration{"all": 250 * ms, "tight": 50 * ms} {
			b.Run(fmt.Sprintf("instances=%d/fit=%s", n, name), func(b *testing.B) {
				s, v := scheduleBench(n, slack)
				b.ReportAllocs()
				for b.Loop() {
					s.findSeats(v)
					s.collect(v)
					s.placeAll()
				}
			})
		}
	}
}
