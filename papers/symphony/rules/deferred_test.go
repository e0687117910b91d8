package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/ruletest"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

const ms = time.Millisecond

// deferredAt routes at a time and returns when the rule wants to be called next.
func deferredAt(o *Deferred, f *fleet.Fleet, now time.Duration) serving.Time {
	v := ruletest.ViewAt(f, serving.Time(now))
	v.Begin(serving.Time(now), serving.None, nil)
	o.Route(v)
	return v.Asked()
}

func at(d time.Duration) serving.Time { return serving.Time(d) }

// Batches of b take 4 + 3b ms. A query due in 50 ms waits until 50 - l(2) = 40 ms for another one, two until 50 - l(3)
// = 37 ms, and five, the most that a batch holds, do not wait.
func TestDeferredWaitsUntilOneMoreWouldBeLate(t *testing.T) {
	for _, c := range []struct {
		waiting int
		start   time.Duration
	}{
		{1, 40 * ms}, {2, 37 * ms}, {4, 31 * ms}, {5, 0},
	} {
		f, o := ruletest.Ladder(1, 1, 5, 50*ms, serving.DropLate), NewDeferred()
		for n := range c.waiting {
			ruletest.AddWaiting(f, n+1, 1, at(50*ms+time.Duration(n)*ms))
		}
		i := f.Ready(0)[0]
		if c.start > 0 {
			if wake := deferredAt(o, f, 0); wake != at(c.start) || i.Queue().Len() > 0 {
				t.Errorf("%d wait: %d started, to be called at %v, want none and %v", c.waiting, i.Queue().Len(),
					time.Duration(wake), c.start)
			}
			deferredAt(o, f, c.start-1)
			if i.Queue().Len() > 0 {
				t.Errorf("%d wait: started too early", c.waiting)
			}
		}
		wake := deferredAt(o, f, c.start)
		if i.Queue().Len() != c.waiting || i.Choice() != 0 || wake != serving.Never {
			t.Errorf("%d wait: %d started at %v, called again at %v", c.waiting, i.Queue().Len(), c.start,
				time.Duration(wake))
		}
	}
}

// Of three free machines the first takes the batch. While it runs, the second takes the next.
func TestDeferredFillsMachinesFromTheFirst(t *testing.T) {
	f, o := ruletest.Ladder(3, 1, 5, 50*ms, serving.DropLate), NewDeferred()
	for n := range 7 {
		ruletest.AddWaiting(f, n+1, 1, at(50*ms))
	}
	wake := deferredAt(o, f, 0)
	got := ruletest.Lengths(f)
	// Five fill the first machine. Two are left, which wait until 50 - l(3) ms.
	if !slices.Equal(got, []int{5, 0, 0}) || wake != at(37*ms) {
		t.Errorf("queues %v, called at %v", got, time.Duration(wake))
	}
	f.Start(f.Ready(0)[0], 1, 0, 5, 0, 19*ms)
	if deferredAt(o, f, 37*ms); !slices.Equal(ruletest.Lengths(f), []int{0, 2, 0}) {
		t.Errorf("queues %v, want two on the second machine", ruletest.Lengths(f))
	}
}

// A query with 8 ms left allows a batch of one, the four behind it one of four. It is passed over. Once it is alone, it
// is served.
func TestDeferredPassesOverWhatMakesBatchesSmall(t *testing.T) {
	f, o := ruletest.Ladder(2, 1, 5, 50*ms, serving.DropLate), NewDeferred()
	ruletest.AddWaiting(f, 1, 1, at(50*ms))
	for n := range 4 {
		ruletest.AddWaiting(f, n+2, 1, at(63*ms))
	}
	// At 42 ms a batch of five would end at 61. Without the first, four wait until 63 - l(5) = 44 ms.
	if wake := deferredAt(o, f, 42*ms); wake != at(44*ms) || f.Ready(0)[0].Queue().Len() > 0 {
		t.Errorf("called at %v with %v", time.Duration(wake), ruletest.Lengths(f))
	}
	// A fifth joins them: the batch is full and goes at once. The first is then alone, and past its window: it goes to
	// the other machine.
	ruletest.AddWaiting(f, 6, 1, at(64*ms))
	deferredAt(o, f, 42*ms)
	if got := ruletest.Lengths(f); !slices.Equal(got, []int{5, 1}) {
		t.Errorf("queues %v, want the five and then the one", got)
	}
}

// Where the batch without the first query begins no sooner than one with it ends, nothing is lost by serving it.
func TestDeferredServesWhatItPassedOverWhereItWouldIdle(t *testing.T) {
	f, o := ruletest.Ladder(1, 1, 5, 50*ms, serving.DropLate), NewDeferred()
	ruletest.AddWaiting(f, 1, 1, at(50*ms))
	for n := range 4 {
		ruletest.AddWaiting(f, n+2, 1, at(100*ms))
	}
	// At 42 ms a batch of one ends at 49. The four wait until 100 - l(5) = 81 ms.
	if deferredAt(o, f, 42*ms); f.Ready(0)[0].Queue().Len() != 1 {
		t.Errorf("%v began, want the first", ruletest.Lengths(f))
	}
}

// A probe begins although it is believed to be late: nothing else corrects the belief.
func TestDeferredBeginsProbes(t *testing.T) {
	f, o := ruletest.Ladder(1, 1, 5, 50*ms, serving.DropLate), NewDeferred()
	ruletest.AddWaiting(f, 1, 1, at(50*ms))
	f.Probe(f.Central(0).Head())
	if deferredAt(o, f, 45*ms); f.Ready(0)[0].Queue().Len() != 1 {
		t.Error("a probe has not begun")
	}
}

// Where one machine is free for two stages, the batch whose window ends first gets it.
func TestDeferredServesTheWindowThatEndsFirst(t *testing.T) {
	f, o := ruletest.Ladder(1, 1, 5, 50*ms, serving.DropLate), NewDeferred()
	spec := f.Spec()
	spec.Apps = append(spec.Apps, spec.Apps[0])
	spec.Apps[1].Stages = []serving.StageID{1}
	spec.Stages = append(spec.Stages, serving.Stage{Name: "other", App: 1, Variants: []serving.VariantID{0}})
	f.Grow(spec, []serving.StageID{1})
	second := f.Launch(fleet.Placement{
		Key: fleet.Key{Worker: 0, Ordinal: 2}, Stage: 1, Terms: fleet.Terms{Slots: 1, TimeShared: true},
		Variants: []fleet.Loaded{{Limit: 5, Wanted: true}},
	}, 0)
	f.Warm(second, 0)
	first := f.Ready(0)[0]
	f.SetTerms(first, fleet.Terms{Slots: 1, TimeShared: true})
	ruletest.AddWaiting(f, 1, 1, at(27*ms))
	r := f.Add(&fleet.Work{Query: 2, Stage: 1, Items: 1, Pin: serving.None, Deadline: at(25 * ms)})
	f.Wait(r)
	deferredAt(o, f, 18*ms) // in both windows: from 17 to 20 ms, and from 15 to 18 ms
	if first.Queue().Len() != 0 || second.Queue().Len() != 1 {
		t.Errorf("queues %d and %d, want the one that is due first", first.Queue().Len(), second.Queue().Len())
	}
}
