package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/ruletest"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

const ms = time.Millisecond

// chain is a pipeline of stages with an instance each, which runs batches of up to five: n take 4 + 3n ms.
func chain(stages int, late serving.LatePolicy) *fleet.Fleet {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}},
		Apps: []serving.App{{
			Name: "a", SLO: serving.SLO{Latency: time.Second, Percentile: 99}, Weight: 1, QueueLimit: 1000, Late: late,
		}},
	}
	for s := range stages {
		id := serving.StageID(s)
		spec.Apps[0].Stages = append(spec.Apps[0].Stages, id)
		x := serving.Stage{Name: string(rune('a' + s)), Variants: []serving.VariantID{serving.VariantID(s)}}
		if s+1 < stages {
			x.Next = []serving.Edge{{To: id + 1, FanOut: 1}}
		}
		spec.Stages = append(spec.Stages, x)
		spec.Variants = append(spec.Variants, serving.Variant{Name: "v", Stage: id, Accuracy: 0.9, MaxBatch: 5})
		spec.Workers = append(spec.Workers, serving.Worker{Name: "w"})
	}
	f := fleet.New(spec, profile.Constant{Base: 4 * ms, PerItem: 3 * ms})
	for s := range stages {
		i := f.Launch(fleet.Placement{
			Key: fleet.Key{Worker: serving.WorkerID(s)}, Stage: serving.StageID(s), Terms: fleet.Terms{Slots: 1},
			Variants: []fleet.Loaded{{Variant: serving.VariantID(s), Limit: 5, Wanted: true}},
		}, 0)
		f.Warm(i, serving.VariantID(s))
	}
	return f
}

// wait lets a query wait at a stage that is due at the end of the pipeline after so long.
func wait(f *fleet.Fleet, id int, s serving.StageID, due time.Duration) fleet.Ref {
	at := serving.Time(due)
	r := f.Add(&fleet.Work{
		Query: serving.QueryID(id), Stage: s, Items: 1, Pin: serving.None, Deadline: at, LatestEnd: at, Due: at,
	})
	f.Wait(r)
	return r
}

// began routes the first stage and returns the queries that its instance got.
func began(o *Proactive, f *fleet.Fleet, now time.Duration) (ids []int) {
	o.Route(ruletest.ViewAt(f, serving.Time(now)))
	for r := f.Ready(0)[0].Queue().Head(); r != fleet.Nil; r = f.Next(r) {
		ids = append(ids, int(f.Task(r).Query()))
	}
	return ids
}

// A query alone takes 7 ms here. The stage behind takes a batch of five, 19 ms, and the wait for it: uniform between 0
// and 19 ms, of whose normal stand-in the tenth part is 19/2 - 1.2816 x 19/sqrt(12) = 2.47 ms. Together 28.47 ms. Two
// stages behind take twice 19 ms and 19 - 1.2816 x 19/sqrt(6) = 9.06 ms, with the 7 together 54.06.
func TestProactiveCountsTheStagesBehind(t *testing.T) {
	for _, c := range []struct {
		stages int
		due    time.Duration
		goes   bool
	}{
		{1, 6 * ms, false}, {1, 7 * ms, true},
		{2, 28400 * time.Microsecond, false}, {2, 28500 * time.Microsecond, true},
		{3, 54 * ms, false}, {3, 54100 * time.Microsecond, true},
	} {
		f := chain(c.stages, serving.DropLate)
		wait(f, 1, 0, c.due)
		if got := began(NewProactive(), f, 0); len(got) > 0 != c.goes {
			t.Errorf("%d stages, due in %v: began %v, want %v", c.stages, c.due, got, c.goes)
		}
		f = chain(c.stages, serving.ServeLate)
		wait(f, 1, 0, c.due)
		if got := began(NewProactive(), f, 0); len(got) == 0 {
			t.Errorf("%d stages, due in %v: left out by an app that serves late", c.stages, c.due)
		}
	}
}

// Twelve wait behind, of which five go in the next batch. The other seven take 7/5 x 19 = 26.6 ms: a query alone needs
// 28.47 + 26.6 = 55.07 ms.
func TestProactiveCountsWhatWaitsBehind(t *testing.T) {
	for due, goes := range map[time.Duration]bool{55 * ms: false, 55200 * time.Microsecond: true} {
		f := chain(2, serving.DropLate)
		for n := range 12 {
			wait(f, 10+n, 1, time.Second)
		}
		wait(f, 1, 0, due)
		if got := began(NewProactive(), f, 0); len(got) > 0 != goes {
			t.Errorf("due in %v: began %v, want %v", due, got, goes)
		}
	}
}

// What has passed counts: the query that came first is left out, those behind it go without it.
func TestProactiveLeavesOutTheLate(t *testing.T) {
	f := chain(2, serving.DropLate)
	wait(f, 1, 0, 35*ms)
	for n := range 3 {
		wait(f, 2+n, 0, 60*ms)
	}
	// At 10 ms a batch of four takes 16 ms and ends the pipeline at 10 + 16 + 21.47.
	if got := began(NewProactive(), f, 10*ms); !slices.Equal(got, []int{2, 3, 4}) {
		t.Errorf("began %v, want the three without the first", got)
	}
	f = chain(2, serving.DropLate)
	f.Probe(wait(f, 1, 0, 5*ms))
	if got := began(NewProactive(), f, 0); len(got) != 1 {
		t.Error("a probe was left out")
	}
}

// The stage carries 5 / 19 ms = 263 queries/s. In a second in which 200 have come those due first go, in one with 400
// those due last.
func TestProactiveOrder(t *testing.T) {
	for come, want := range map[int][]int{200: {1, 2, 3, 4, 5}, 400: {396, 397, 398, 399, 400}} {
		f, o := chain(2, serving.DropLate), NewProactive()
		for n := range come {
			wait(f, n+1, 0, 10*time.Second+time.Duration(n)*ms)
		}
		if got := began(o, f, time.Second); !slices.Equal(got, want) {
			t.Errorf("%d came: began %v, want %v", come, got, want)
		}
		// 60 more in the next second: 0.8 x 400 + 0.2 x 60 = 332/s, which scatters by 0.2 x 340 = 68, is not below
		// what is carried; the order stays.
		i := f.Ready(0)[0]
		f.Start(i, 1, 0, 5, serving.Time(time.Second), 19*ms)
		f.Finish(i, 1, serving.Time(time.Second+19*ms))
		for n := range 60 {
			wait(f, come+n+1, 0, 20*time.Second)
		}
		began(o, f, 2*time.Second)
		if s := o.Of(0); s.mostLeft != (come == 400) {
			t.Errorf("%d came, then 60: those with the most time first: %v", come, s.mostLeft)
		}
	}
}

// Under overload, too, a higher priority goes first.
func TestProactiveOrderIsWithinAPriority(t *testing.T) {
	f, o := chain(1, serving.DropLate), NewProactive()
	for n := range 400 {
		due := serving.Time(10*time.Second + time.Duration(n)*ms)
		r := f.Add(&fleet.Work{
			Query: serving.QueryID(n + 1), Items: 1, Pin: serving.None, Deadline: due, LatestEnd: due, Due: due,
			Priority: int32(1 + n/3), // smaller goes first
		})
		f.Wait(r)
	}
	got := began(o, f, time.Second)
	slices.Sort(got)
	// Of the second three, the two due last.
	if !slices.Equal(got, []int{1, 2, 3, 5, 6}) {
		t.Errorf("began %v, want the first three and the last two of the next", got)
	}
}
