package rules

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/ruletest"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// linear is a latency by device type: a base and a time per item.
type linear [][2]time.Duration

func (l linear) Latency(_ serving.VariantID, d serving.DeviceTypeID, items, _ int) time.Duration {
	return l[d][0] + time.Duration(items)*l[d][1]
}

func (linear) Learner() profile.Learner { return nil }

func (linear) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 0 }

// mixedFleet is a fleet of one variant with so many instances of each type.
func mixedFleet(p profile.Profile, counts []int, slo time.Duration, late serving.LatePolicy) *fleet.Fleet {
	spec := &serving.Spec{
		Workers: []serving.Worker{{Name: "w"}},
		Apps: []serving.App{
			{
				Name: "a", SLO: serving.SLO{Latency: slo, Percentile: 99}, Weight: 1, QueueLimit: 1, Late: late,
				Stages: []serving.StageID{0},
			},
		},
		Stages:   []serving.Stage{{Name: "s", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "v", Accuracy: 0.9, MaxBatch: 1000}},
	}
	f := fleet.New(spec, p)
	for d, n := range counts {
		spec.DeviceTypes = append(spec.DeviceTypes, serving.DeviceType{Name: string(rune('a' + d))})
		for range n {
			i := f.Launch(fleet.Placement{
				DeviceType: serving.DeviceTypeID(d), Terms: fleet.Terms{Slots: 1},
				Variants: []fleet.Loaded{{Limit: 1000, Wanted: true}},
			}, 0)
			f.Warm(i, 0)
		}
	}
	return f
}

// runUntil makes an instance run a query until a time.
func runUntil(f *fleet.Fleet, i *fleet.Instance, id int, until time.Duration) {
	f.Assign(ruletest.AddWaiting(f, id, 1, serving.Never), i, 0)
	f.Start(i, serving.BatchID(id), 0, 1, 0, until)
}

// queued lists the queries in each instance's queue.
func queued(f *fleet.Fleet) [][]int {
	out := make([][]int, len(f.Ready(0)))
	for k, i := range f.Ready(0) {
		for r := i.Queue().Head(); r != fleet.Nil; r = f.Next(r) {
			out[k] = append(out[k], int(f.Task(r).Query()))
		}
	}
	return out
}

func sameQueues(got [][]int, want ...[]int) bool {
	return slices.EqualFunc(got, want, slices.Equal[[]int])
}

const ms = time.Millisecond

// run serves queries, each given by arrival and items, under a rule, one at a time on each instance. It returns how
// many ended by their deadlines.
func run(f *fleet.Fleet, o route.Router, slo time.Duration, queries [][2]int) int {
	now, inTime, batch := serving.Time(0), 0, serving.BatchID(0)
	for next := 0; ; {
		for ; next < len(queries) && serving.Time(queries[next][0])*1e6 <= now; next++ {
			ruletest.AddWaiting(f, next+1, queries[next][1], serving.Time(queries[next][0])*1e6+serving.Time(slo))
		}
		for _, i := range f.Ready(0) {
			if i.Running() > 0 && i.Batch(0).Expected <= now {
				b, _ := f.Finish(i, i.Batch(0).ID, now)
				if f.Task(b.Head).Deadline() >= now {
					inTime++
				}
				f.Release(b.Head)
			}
		}
		o.Route(ruletest.ViewAt(f, now))
		wake := serving.Never
		if next < len(queries) {
			wake = serving.Time(queries[next][0]) * 1e6
		}
		for _, i := range f.Ready(0) {
			if i.Running() == 0 && i.Queue().Len() > 0 {
				batch++
				f.Start(i, batch, 0, 1, now, f.Fastest(i, f.Task(i.Queue().Head())))
			}
			for k := range i.Running() {
				b := i.Batch(k)
				wake = min(wake, b.Expected)
			}
		}
		if wake == serving.Never {
			return inTime
		}
		now = wake
	}
}

// Figure 5: two instances, four queries. Those that gain most from the strong instance get it, and all four are in
// time. First come first served makes three.
func TestMatchingFigure5(t *testing.T) {
	beliefs := linear{{10 * ms, ms / 10}, {10 * ms, ms}}
	queries := [][2]int{{0, 50}, {0, 400}, {30, 60}, {35, 500}}
	count := func(o route.Router) int {
		return run(mixedFleet(beliefs, []int{1, 1}, 100*ms, serving.ServeLate), o, 100*ms, queries)
	}
	if n := count(NewMatching(1)); n != 4 {
		t.Errorf("matching serves %d of 4 in time", n)
	}
	if n := count(&route.FCFS{Idle: true}); n != 3 {
		t.Errorf("first come first served serves %d of 4 in time, the example wants 3", n)
	}
}

// The pairs that begin are those, on free instances and in time, of a cheapest pairing by Eq. 4 with Eq. 8, found by
// trying all.
func TestMatchingAgainstBruteForce(t *testing.T) {
	for seed := uint64(1); seed <= 400; seed++ {
		rng := rand.New(rand.NewPCG(seed, 5))
		var beliefs linear
		var counts []int
		for range 1 + rng.IntN(3) {
			beliefs = append(beliefs, [2]time.Duration{
				time.Duration(1+rng.IntN(20)) * ms, time.Duration(10+rng.IntN(1000)) * time.Microsecond,
			})
			counts = append(counts, rng.IntN(3))
		}
		counts[0]++
		slo := time.Duration(50+rng.IntN(300)) * ms
		f := mixedFleet(beliefs, counts, slo, serving.DropLate)
		ready := f.Ready(0)
		wait := make([]time.Duration, len(ready))
		for k, i := range ready {
			if rng.IntN(3) == 0 {
				wait[k] = time.Duration(1+rng.IntN(100)) * ms
				runUntil(f, i, 1000+k, wait[k])
			}
		}
		var tasks []fleet.Task
		for q := range 1 + rng.IntN(5) {
			r := ruletest.AddWaiting(f, q+1, 1+rng.IntN(500), serving.Time(rng.Int64N(int64(slo))))
			tasks = append(tasks, *f.Task(r))
		}
		slices.SortFunc(tasks, func(a, b fleet.Task) int { return int(a.Deadline() - b.Deadline()) })
		base := math.Inf(1)
		for _, i := range ready {
			base = min(base, float64(beliefs.Latency(0, i.DeviceType(), 1000, 1)))
		}
		var rows [][]float64
		var ids []int
		penalty := 10 * float64(slo)
		for _, x := range tasks {
			row, makes := make([]float64, len(ready)), false
			for k, i := range ready {
				l := wait[k] + beliefs.Latency(0, i.DeviceType(), x.Items(), 1)
				row[k] = penalty
				if float64(l) <= float64(x.Deadline())-0.02*float64(slo) {
					row[k], makes = base/float64(beliefs.Latency(0, i.DeviceType(), 1000, 1))*float64(l), true
				}
			}
			if makes && len(rows) < 2*len(ready) {
				rows, ids = append(rows, row), append(ids, int(x.Query()))
			}
		}
		most, want := math.Inf(1), make([]int, len(ready)) // by instance the query that begins
		at := make([]int, len(ready))
		var try func(q, left int, sum float64)
		try = func(q, left int, sum float64) {
			if q == len(rows) {
				if sum < most-1e-3 {
					most = sum
					for k := range at {
						want[k] = 0
						if at[k] > 0 && wait[k] == 0 && rows[at[k]-1][k] < penalty {
							want[k] = ids[at[k]-1]
						}
					}
				}
				return
			}
			for k := range at {
				if at[k] == 0 {
					at[k] = q + 1
					try(q+1, left, sum+rows[q][k])
					at[k] = 0
				}
			}
			if left > 0 {
				try(q+1, left-1, sum)
			}
		}
		try(0, max(len(rows)-len(ready), 0), 0)
		late := make(map[int]bool)
		for _, x := range tasks {
			late[int(x.Query())] = !slices.Contains(ids, int(x.Query()))
		}
		NewMatching(1).Route(ruletest.ViewOf(f))
		for k, got := range queued(f) {
			if want[k] != 0 && !slices.Equal(got, []int{want[k]}) || want[k] == 0 && len(got) > 0 && !late[got[0]] {
				t.Fatalf("seed %d: instance %d was given %v, want %d of %v", seed, k, got, want[k], want)
			}
		}
	}
}

// A pair that would end in the last fiftieth of the objective counts as late.
func TestMatchingMargin(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		want  [][]int
	}{{98 * ms, [][]int{nil, {1}}}, {98*ms + 1, [][]int{{1}, nil}}} {
		// The second instance is so slow for the largest query that its time is worth nearly nothing.
		p := weighted{linear{{50 * ms, 0}, {c.takes - 1000, 1000}}}
		f := mixedFleet(p, []int{1, 1}, 100*ms, serving.DropLate)
		ruletest.AddWaiting(f, 1, 1, serving.Time(100*ms))
		NewMatching(1).Route(ruletest.ViewOf(f))
		if got := queued(f); !sameQueues(got, c.want...) {
			t.Errorf("the cheap instance takes %v of 100ms: %v, want %v", c.takes, got, c.want)
		}
	}
}

type weighted struct{ profile.Profile }

func (w weighted) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	if items == 1000 && d == 1 {
		return time.Hour
	}
	return w.Profile.Latency(v, d, items, concurrency)
}

// A query waits for a busy instance rather than be late on a free one, and begins there at the next event.
func TestMatchingWaitsAndMatchesAgain(t *testing.T) {
	f := mixedFleet(linear{{10 * ms, ms / 10}, {10 * ms, ms}}, []int{1, 1}, 100*ms, serving.ServeLate)
	runUntil(f, f.Ready(0)[0], 99, 20*ms)
	ruletest.AddWaiting(f, 1, 300, serving.Time(100*ms)) // 40 ms on the first, 310 ms on the second
	o := NewMatching(1)
	o.Route(ruletest.ViewOf(f))
	if got := queued(f); !sameQueues(got, nil, nil) {
		t.Errorf("%v, want nothing to begin", got)
	}
	f.Finish(f.Ready(0)[0], 99, serving.Time(20*ms))
	o.Route(ruletest.ViewAt(f, serving.Time(20*ms)))
	if got := queued(f); !sameQueues(got, []int{1}, nil) {
		t.Errorf("%v, want query 1 on the first", got)
	}
}

// Queries that can be in time nowhere take no row, however many they are, and get the instances that remain.
func TestMatchingLateQueriesDoNotBlock(t *testing.T) {
	f := mixedFleet(linear{{10 * ms, ms / 10}}, []int{2}, 100*ms, serving.ServeLate)
	for q := range 10 {
		ruletest.AddWaiting(f, q+1, 100, serving.Time(5*ms))
	}
	ruletest.AddWaiting(f, 11, 100, serving.Time(50*ms))
	o := NewMatching(1)
	v := ruletest.ViewAt(f, serving.Time(10*ms))
	o.Route(v)
	if got := queued(f); !sameQueues(got, []int{11}, []int{1}) {
		t.Errorf("%v, want the one that can be in time, and the first late one", got)
	}
	// With queries in time for every instance the late ones wait; when those are gone they are served in their order.
	f = mixedFleet(linear{{10 * ms, ms / 10}}, []int{2}, 100*ms, serving.ServeLate)
	ruletest.AddWaiting(f, 1, 100, 1)
	ruletest.AddWaiting(f, 2, 100, 2)
	ruletest.AddWaiting(f, 3, 100, 3)
	ruletest.AddWaiting(f, 4, 100, serving.Time(90*ms))
	ruletest.AddWaiting(f, 5, 100, serving.Time(91*ms))
	o = NewMatching(1)
	o.Route(ruletest.ViewOf(f))
	if got := queued(f); !sameQueues(got, []int{4}, []int{5}) {
		t.Fatalf("%v, want 4 and 5", got)
	}
	for k, i := range f.Ready(0) {
		f.Start(i, serving.BatchID(k+1), 0, 1, 0, 20*ms)
		f.Finish(i, serving.BatchID(k+1), serving.Time(20*ms))
	}
	o.Route(ruletest.ViewAt(f, serving.Time(20*ms)))
	if got := queued(f); !sameQueues(got, []int{1}, []int{2}) {
		t.Errorf("%v, want 1 and 2", got)
	}
}

// The first 2n that can be in time take part, no more.
func TestMatchingWindow(t *testing.T) {
	f := mixedFleet(linear{{10 * ms, ms / 10}}, []int{1}, 400*ms, serving.DropLate)
	for q, items := range []int{500, 400, 1} {
		ruletest.AddWaiting(f, q+1, items, serving.Time(300*ms)+serving.Time(q))
	}
	NewMatching(1).Route(ruletest.ViewOf(f))
	if got := queued(f); !sameQueues(got, []int{2}) {
		t.Errorf("%v, want the smaller of the first two", got)
	}
}

// lookAheadRules are new instances of the rules that compare all instances.
var lookAheadRules = map[string]func() route.Router{"matching": func() route.Router {
	return NewMatching(1)
}, "schedule": func() route.Router { return NewSchedule() }}

// A query that only some instances may serve, because of its requirements or its size, goes to one of those.
func TestRequirementsAreKept(t *testing.T) {
	for name, rule := range lookAheadRules {
		f := mixedFleet(linear{{10 * ms, ms / 10}, {20 * ms, ms / 10}}, []int{1, 1}, time.Second, serving.ServeLate)
		f.Spec().Variants = append(f.Spec().Variants, serving.Variant{Name: "other", Accuracy: 0.9, MaxBatch: 2000})
		i := f.Ready(0)[1]
		f.AddVariant(i, fleet.Loaded{Variant: 1, Limit: 2000, Wanted: true})
		f.Warm(i, 1)
		o := rule()
		r := f.Add(&fleet.Work{Query: 1, Items: 1, Pin: 1, Deadline: serving.Time(time.Second)})
		f.Wait(r)
		ruletest.AddWaiting(f, 2, 1500, serving.Time(time.Second)+1)
		o.Route(ruletest.ViewOf(f))
		if got := queued(f); !sameQueues(got, nil, []int{1}) {
			t.Errorf("%s: %v, want the pinned query on the second", name, got)
		}
		f.Dequeue(r)
		o.Route(ruletest.ViewOf(f))
		if got := queued(f); !sameQueues(got, nil, []int{2}) {
			t.Errorf("%s: %v, want the large query on the second", name, got)
		}
	}
}

// An instance with several slots is given as many queries as it can begin.
func TestSlotsAreFilled(t *testing.T) {
	for name, rule := range lookAheadRules {
		f := mixedFleet(linear{{10 * ms, ms / 10}}, []int{2}, time.Second, serving.DropLate)
		f.SetTerms(f.Ready(0)[0], fleet.Terms{Slots: 3})
		f.Refresh(f.Ready(0)[0])
		for q := range 6 {
			ruletest.AddWaiting(f, q+1, 10, serving.Time(time.Second)+serving.Time(q))
		}
		rule().Route(ruletest.ViewOf(f))
		if got := ruletest.Lengths(f); !slices.Equal(got, []int{3, 1}) {
			t.Errorf("%s: %v, want 3 and 1", name, got)
		}
	}
}

// Instances of every type are dealt evenly to cells, and every query that some instance can serve is served.
func TestMatchingCells(t *testing.T) {
	f := mixedFleet(linear{{10 * ms, ms / 10}, {10 * ms, ms}}, []int{4, 8}, 400*ms, serving.DropLate)
	o := NewMatching(4)
	for q := range 12 {
		ruletest.AddWaiting(f, q+1, 20+q, serving.Time(400*ms)+serving.Time(q))
	}
	o.Route(ruletest.ViewOf(f))
	for _, c := range o.Of(0).cells {
		types := [2]int{}
		for _, i := range c.instances {
			types[i.DeviceType()]++
		}
		if types != [2]int{1, 2} {
			t.Errorf("a cell has %v of each type, want 1 and 2", types)
		}
	}
	got := ruletest.Lengths(f)
	if !slices.Equal(got, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}) || f.Central(0).Len() != 0 {
		t.Errorf("12 queries on 12 free instances: %v", got)
	}
}

// Ribbon's rule: the base type is the fastest one for large queries even where another is faster for small ones. The
// next idle instance takes the head of the queue even if it will be late there.
func TestFCFSPrefersTheBaseType(t *testing.T) {
	f := mixedFleet(linear{{5 * ms, ms}, {10 * ms, ms / 10}}, []int{2, 1}, 100*ms, serving.ServeLate)
	for q, items := range []int{1, 900, 2, 3} {
		ruletest.AddWaiting(f, q+1, items, serving.Time(100*ms)+serving.Time(q))
	}
	(&route.FCFS{Idle: true}).Route(ruletest.ViewOf(f))
	if got := queued(f); !sameQueues(got, []int{2}, []int{3}, []int{1}) {
		t.Errorf("%v, want 1 on the third instance, 2 and 3 on the others", got)
	}
}

// DRS: by size alone, first come first served in each class. A query goes to the other class only where its own has no
// instance.
func TestThreshold(t *testing.T) {
	beliefs := linear{{10 * ms, ms}, {10 * ms, ms / 10}}
	f := mixedFleet(beliefs, []int{2, 1}, 100*ms, serving.ServeLate)
	for q, items := range []int{101, 100, 500, 7, 8} {
		ruletest.AddWaiting(f, q+1, items, serving.Time(100*ms)+serving.Time(q))
	}
	NewThreshold(100).Route(ruletest.ViewOf(f))
	if got := queued(f); !sameQueues(got, []int{2}, []int{4}, []int{1}) {
		t.Errorf("%v, want the first large query on the third instance, which is of the base type, the first small "+
			"ones on the others", got)
	}
	f = mixedFleet(beliefs, []int{0, 1}, 100*ms, serving.ServeLate)
	ruletest.AddWaiting(f, 1, 5, serving.Time(100*ms))
	NewThreshold(100).Route(ruletest.ViewOf(f))
	if got := queued(f); !sameQueues(got, []int{1}) {
		t.Errorf("%v: a small query must go to the base type where there is no other", got)
	}
}

// The cost of a decision, by instances, half of them free, and cells, with as many queries as take part.
func BenchmarkMatching(b *testing.B) {
	for _, c := range []struct {
		name             string
		instances, cells int
	}{{"20", 20, 1}, {"400", 400, 1}, {"400/cells=4", 400, 4}, {"400/cells=16", 400, 16}} {
		b.Run("instances="+c.name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(7, 7))
			n := c.instances
			f := mixedFleet(linear{
				{20 * ms, ms / 5}, {60 * ms, ms * 6 / 10}, {30 * ms, ms},
			}, []int{n / 4, n / 4, n / 2}, 350*ms, serving.DropLate)
			for k, i := range f.Ready(0) {
				if k%2 == 0 {
					runUntil(f, i, 10000+k, time.Duration(1+rng.IntN(200))*ms)
				}
			}
			for q := range n {
				ruletest.AddWaiting(f, q+1, 10*(1+rng.IntN(100)), serving.Time(150+rng.IntN(200))*1e6)
			}
			o := NewMatching(c.cells)
			v := ruletest.ViewOf(f)
			s := o.Of(0)
			s.build(v, c.cells)
			b.ReportAllocs()
			for b.Loop() {
				s.openCells(v)
				weigh(v, s.kinds, s.largest)
				s.deal(v)
				for _, at := range s.open {
					x := &s.cells[at]
					x.match = slices.Grow(x.match[:0], len(x.queries))[:len(x.queries)]
					if _, err := x.solver.Solve(len(x.queries), len(x.instances), x.cost, x.match); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
