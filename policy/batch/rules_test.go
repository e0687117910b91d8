package batch

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

const ms = serving.Time(time.Millisecond)

// situation is an instance with queries in its queue, due at the given times in ms.
type situation struct {
	base, perItem int // of the latency, ms
	limit         int
	now           int   // ms
	due           []int // ms
	items         []int // nil: one each
	ready         []int // when each began to wait, ms; nil: 0
	keep          bool  // late queries are served
	hold          int   // ms
	last          int   // ms: LatestEnd of each; 0: due
}

func (s situation) view() *View {
	spec := &serving.Spec{
		Apps: []serving.App{{}}, Variants: []serving.Variant{{Name: "v", Accuracy: 0.9, MaxBatch: 64}},
		Stages: []serving.Stage{{}}, DeviceTypes: []serving.DeviceType{{}},
	}
	f := fleet.New(spec, profile.Constant{
		Base: time.Duration(s.base) * time.Millisecond, PerItem: time.Duration(s.perItem) * time.Millisecond,
	})
	i := f.Launch(fleet.Placement{
		Terms:    fleet.Terms{Slots: 1, Hold: time.Duration(s.hold) * time.Millisecond},
		Variants: []fleet.Loaded{{Limit: s.limit, Wanted: true}},
	}, 0)
	f.Warm(i, 0)
	total := 0
	for k, d := range s.due {
		items, ready := 1, 0
		if s.items != nil {
			items = s.items[k]
		}
		if s.ready != nil {
			ready = s.ready[k]
		}
		total += items
		r := f.Add(&fleet.Work{
			Query: serving.QueryID(k + 1), Items: int32(items), Pin: serving.None, Deadline: serving.Time(d) * ms,
			LatestEnd: serving.Time(s.last) * ms, Ready: serving.Time(ready) * ms,
		})
		f.Wait(r)
		f.Assign(r, i, serving.Time(ready)*ms)
	}
	return &View{
		Now: serving.Time(s.now) * ms, Fleet: &f.View, Instance: i, MayDrop: !s.keep, Variant: 0, Limit: s.limit,
		Ready: len(s.due), Items: total,
	}
}

func run(n int) Decision                  { return Decision{Action: Run, N: n} }
func until(at int) Decision               { return Decision{Action: Wait, Until: serving.Time(at) * ms} }
func same(a, b Decision) bool             { return a.Action == b.Action && a.N == b.N && a.Until == b.Until }
func drop() Decision                      { return Decision{Action: Drop} }
func decide(r Rule, s situation) Decision { return r.New().Decide(s.view()) }

func TestRules(t *testing.T) {
	five := []int{100, 100, 100, 100, 100}
	for _, c := range []struct {
		name string
		rule Rule
		s    situation
		want Decision
	}{
		// Proteus §5. T_process(q) = 10 + 5q; one query expires at 100: T_max_wait(2) = 100 - 20 = 80.
		{
			"adaptive waits for the second query until T_max_wait(2)", Adaptive{}, situation{
				base: 10, perItem: 5, limit: 8, due: []int{100},
			}, until(80),
		},
		{
			"case 1: nobody came until T_max_wait(2), so the one runs", Adaptive{}, situation{
				base: 10, perItem: 5, limit: 8, now: 80, due: []int{100},
			}, run(1),
		},
		// Two queries: T_max_wait(3) = 100 - 25 = 75.
		{
			"case 2: the second came before T_max_wait(3), so it waits for a third", Adaptive{}, situation{
				base: 10, perItem: 5, limit: 8, now: 70, due: []int{100, 120},
			}, until(75),
		},
		{
			"case 2: the second came after T_max_wait(3), so both run", Adaptive{}, situation{
				base: 10, perItem: 5, limit: 8, now: 78, due: []int{100, 120},
			}, run(2),
		},
		{"a full batch does not wait", Adaptive{}, situation{base: 10, perItem: 5, limit: 4, due: five}, run(4)},
		{
			"after a long batch: the first can be saved and the rest follow in time", Adaptive{}, situation{
				base: 10, perItem: 5, limit: 4, now: 80, due: []int{96, 200, 200, 200},
			}, run(1),
		},
		{
			"after a long batch: saving the first would make the others late", Adaptive{}, situation{
				base: 10, perItem: 5, limit: 4, now: 80, due: []int{96, 111, 111, 111},
			}, drop(),
		},
		{
			"a first query that nothing can save is given up", Adaptive{}, situation{
				base: 10, perItem: 5, limit: 4, now: 90, due: []int{96, 200},
			}, drop(),
		},
		{
			"a first query that is behind its stage's part of the objective runs while later stages may make up for it",
			Adaptive{}, situation{base: 10, perItem: 5, limit: 4, now: 90, due: []int{96}, last: 105}, run(1),
		},
		{
			"and is given up when they cannot", Adaptive{}, situation{
				base: 10, perItem: 5, limit: 4, now: 91, due: []int{96}, last: 105,
			}, drop(),
		},
		{
			"the same without waiting for others", EarlyDrop{}, situation{
				base: 10, perItem: 5, limit: 4, now: 90, due: []int{96}, last: 105,
			}, run(1),
		},
		{
			"and when they cannot", EarlyDrop{}, situation{
				base: 10, perItem: 5, limit: 4, now: 91, due: []int{96}, last: 105,
			}, drop(),
		},
		{
			"with serve-late it runs with the largest batch", Adaptive{}, situation{
				base: 10, perItem: 5, limit: 4, now: 90, due: []int{96, 200}, keep: true,
			}, run(2),
		},

		// Nexus: work-conserving, the largest batch in time for the first.
		{"earlydrop runs at once", EarlyDrop{}, situation{base: 10, perItem: 5, limit: 8, due: []int{100}}, run(1)},
		{
			"earlydrop takes the largest batch that is in time", EarlyDrop{}, situation{
				base: 10, perItem: 5, limit: 8, now: 75, due: five,
			}, run(3),
		},
		{
			"earlydrop gives up what cannot make it", EarlyDrop{}, situation{
				base: 10, perItem: 5, limit: 8, now: 86, due: five,
			}, drop(),
		},
		{
			"earlydrop serves late when it must", EarlyDrop{}, situation{
				base: 10, perItem: 5, limit: 8, now: 86, due: five, keep: true,
			}, run(5),
		},

		// INFless §3.2 with its numbers: SLO 200 ms, execution 50 ms, batch 4: the time-out is 150 ms.
		{
			"filltimeout waits for the batch to fill", FillTimeout{}, situation{
				base: 50, limit: 4, now: 10, due: []int{200, 210}, hold: 150,
			}, until(150),
		},
		{
			"filltimeout runs what there is at the time-out", FillTimeout{}, situation{
				base: 50, limit: 4, now: 150, due: []int{200, 210}, hold: 150,
			}, run(2),
		},
		{
			"filltimeout runs a full batch at once", FillTimeout{}, situation{
				base: 50, limit: 4, now: 10, due: five, hold: 150,
			}, run(4),
		},
		{
			"filltimeout with a time-out of its own", FillTimeout{Timeout: 5 * time.Millisecond}, situation{
				base: 50, limit: 4, now: 3, due: []int{200}, hold: 150,
			}, until(5),
		},

		{
			"fixed waits for its size", Fixed{Size: 3}, situation{
				base: 10, perItem: 5, limit: 8, due: []int{100, 100},
			}, until(80),
		},
		{"fixed runs its size", Fixed{Size: 3}, situation{base: 10, perItem: 5, limit: 8, due: five}, run(3)},
		{
			"fixed does not let the first be late", Fixed{Size: 3}, situation{
				base: 10, perItem: 5, limit: 8, now: 80, due: []int{100, 100},
			}, run(2),
		},

		{"single runs one", Single{}, situation{base: 10, limit: 8, due: five}, run(1)},
		{"aimd starts with one", AIMD{}, situation{base: 10, limit: 8, due: five}, run(1)},

		{
			"queries of several items: as many as the limit holds", EarlyDrop{}, situation{
				base: 10, perItem: 1, limit: 8, due: five, items: []int{3, 4, 5, 1, 1},
			}, run(2),
		},
		{
			"mostaccurate with one variant takes all", MostAccurate{}, situation{
				base: 10, perItem: 5, limit: 8, due: five,
			}, run(5),
		},
		{
			"mostaccurate takes its limit when more wait", MostAccurate{}, situation{
				base: 10, perItem: 5, limit: 4, due: five,
			}, run(4),
		},
	} {
		if got := decide(c.rule, c.s); !same(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Clipper §4.3.1: one more after each batch in time, a tenth less after a late one.
func TestAIMDMoves(t *testing.T) {
	b := AIMD{}.New()
	sizes := func() int {
		return b.Decide(situation{base: 1, limit: 32, due: make([]int, 32)}.view()).N
	}
	for want := 1; want <= 10; want++ {
		if got := sizes(); got != want {
			t.Fatalf("batch %d has %d queries", want, got)
		}
		b.Finished(want, false)
	}
	b.Finished(11, true) // 11 -> 9.9
	if got := sizes(); got != 9 {
		t.Errorf("after a late batch of 11: %d, want 9", got)
	}
}

// MostAccurate lowers accuracy as the queue grows, no further than it must.
func TestMostAccurateFollowsTheQueue(t *testing.T) {
	spec := &serving.Spec{Apps: []serving.App{{}}, Stages: []serving.Stage{{}}, DeviceTypes: []serving.DeviceType{{}},
		Variants: []serving.Variant{
			{Name: "slow", Accuracy: 0.9, MaxBatch: 64}, {Name: "middle", Accuracy: 0.8, MaxBatch: 64},
			{Name: "fast", Accuracy: 0.6, MaxBatch: 64}}}
	f := fleet.New(spec, perVariant{10 * time.Millisecond, 2 * time.Millisecond, time.Millisecond / 2})
	i := f.Launch(fleet.Placement{
		Terms: fleet.Terms{Slots: 1}, Variants: []fleet.Loaded{
			{Variant: 0, Limit: 5, Wanted: true}, {Variant: 1, Limit: 25, Wanted: true},
			{Variant: 2, Limit: 64, Wanted: true},
		},
	}, 0)
	for v := range 3 {
		f.Warm(i, serving.VariantID(v))
	}
	for n, want := range map[int]serving.VariantID{1: 0, 5: 0, 6: 1, 25: 1, 26: 2, 64: 2, 90: 2} {
		for i.Queue().Len() < n {
			r := f.Add(&fleet.Work{
				Query: serving.QueryID(i.Queue().Len() + 1), Items: 1, Pin: serving.None, Deadline: 100 * ms,
			})
			f.Wait(r)
			f.Assign(r, i, 0)
		}
		for i.Queue().Len() > n {
			r := i.Queue().Head()
			f.Dequeue(r)
			f.Release(r)
		}
		d := MostAccurate{}.New().Decide(&View{
			Fleet: &f.View, Instance: i, MayDrop: true, Variant: 0, Limit: 5, Ready: n, Items: n,
		})
		if d.Action != Run || d.Variant != want || d.N != min(n, 64) {
			t.Errorf("%d queries wait: %+v, want variant %d", n, d, want)
		}
	}
}

type perVariant []time.Duration

func (p perVariant) Latency(v serving.VariantID, _ serving.DeviceTypeID, items, _ int) time.Duration {
	return time.Duration(items) * p[v]
}
func (perVariant) Learner() profile.Learner { return nil }

func (p perVariant) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 0 }

// On random situations, InTime and Fit equal a search by counting. Adaptive neither starts a batch that it believes to
// end after the first deadline, nor waits beyond T_max_wait(q+1).
func TestAgainstBruteForce(t *testing.T) {
	for seed := uint64(1); seed <= 3000; seed++ {
		rng := rand.New(rand.NewPCG(seed, 2))
		s := situation{base: rng.IntN(20), perItem: 1 + rng.IntN(8), limit: 1 + rng.IntN(12), now: rng.IntN(80)}
		due := 20 + rng.IntN(80)
		for range 1 + rng.IntN(15) {
			s.due = append(s.due, due)
			due += rng.IntN(20)
			items := 1
			if rng.IntN(4) == 0 {
				items = 1 + rng.IntN(s.limit)
			}
			s.items = append(s.items, items)
		}
		v := s.view()
		at := serving.Time(rng.IntN(150)) * ms
		want := 0
		for b := 1; b <= s.limit && v.Now+serving.Time(v.Latency(b)) <= at; b++ {
			want = b
		}
		if got := v.InTime(at, s.limit); got != want {
			t.Fatalf("seed %d: InTime = %d, counting says %d", seed, got, want)
		}
		n, items := 0, 0
		for n < len(s.items) && items+s.items[n] <= s.limit {
			items += s.items[n]
			n++
		}
		if gn, gi := v.Fit(s.limit); gn != n || gi != items {
			t.Fatalf("seed %d: Fit = %d queries, %d items, counting says %d, %d", seed, gn, gi, n, items)
		}
		d := Adaptive{}.New().Decide(v)
		first := serving.Time(s.due[0]) * ms
		switch d.Action {
		case Run:
			ran := 0
			for k := range d.N {
				ran += s.items[k]
			}
			if v.Now+serving.Time(v.Latency(ran)) > first {
				t.Fatalf("seed %d: adaptive starts %d items at %v, believed to end after the first deadline %v", seed,
					ran, v.Now, first)
			}
		case Wait:
			if d.Until > first-serving.Time(v.Latency(items+1)) || d.Until <= v.Now {
				t.Fatalf("seed %d: adaptive waits until %v", seed, d.Until)
			}
		}
	}
}
