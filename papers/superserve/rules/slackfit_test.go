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

// Three variants whose batches of n take (4 + 3n) ms times 1, 2 and 3. Of each interval the batch with most items is
// kept.
func TestSlackFitKeepsTheLargestBatchOfEachInterval(t *testing.T) {
	f := ruletest.Ladder(1, 3, 5, 70*ms, serving.DropLate)
	got := buckets(ruletest.ViewOf(f), f.Ready(0)[0])
	// By hand: a: 7 10 13 16 19, b: 14 20 26 32 38, c: 21 30 39 48 57. Only 20 and 21 share an interval: with 50/32 =
	// 1.5625 ms each, the eighth reaches from 19.5 to 21.06.
	want := []bucket{
		{0, 1, 7 * ms}, {0, 2, 10 * ms}, {0, 3, 13 * ms}, {1, 1, 14 * ms}, {0, 4, 16 * ms}, {0, 5, 19 * ms},
		{1, 2, 20 * ms}, {1, 3, 26 * ms}, {2, 2, 30 * ms}, {1, 4, 32 * ms}, {1, 5, 38 * ms}, {2, 3, 39 * ms},
		{2, 4, 48 * ms}, {2, 5, 57 * ms},
	}
	if !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
}

// The time that the first query has left chooses; more queries than the batch holds wait on, and fewer run on its
// variant at once.
func TestSlackFitFollowsTheSlackOfTheFirst(t *testing.T) {
	for _, c := range []struct {
		slack   time.Duration // of the first query
		waiting int
		variant serving.VariantID
		batch   int
	}{
		{6 * ms, 9, 0, 1}, // late in any case: the fastest
		{7 * ms, 9, 0, 1},
		{12 * ms, 9, 0, 2},
		{15 * ms, 9, 1, 1}, // the intervals know nothing of what the queue needs
		{18 * ms, 9, 0, 4},
		{31 * ms, 9, 2, 2},
		{31 * ms, 1, 2, 1},
		{60 * ms, 9, 2, 5},
		{60 * ms, 3, 2, 3},
	} {
		f := ruletest.Ladder(2, 3, 5, 70*ms, serving.DropLate)
		for n := range c.waiting {
			ruletest.AddWaiting(f, n+1, 1, serving.Time(c.slack+time.Duration(n)*ms))
		}
		busy := f.Ready(0)[0]
		extra := f.Add(&fleet.Work{Query: 99, Items: 1, Pin: serving.None, Deadline: 1})
		f.Wait(extra)
		f.Assign(extra, busy, 0)
		f.Start(busy, 1, 0, 1, 0, 10*ms)
		NewSlackFit().Route(ruletest.ViewOf(f))
		i := f.Ready(0)[1]
		if i.Choice() != c.variant || i.Queue().Len() != c.batch || f.Central(0).Len() != c.waiting-c.batch ||
			busy.Queue().Len() > 0 {
			t.Errorf("slack %v, %d wait: %d on %d, want %d on %d", c.slack, c.waiting, i.Queue().Len(), i.Choice(),
				c.batch, c.variant)
		}
	}
}

// A query of several items takes as much of the batch; one that is too large for it ends the batch.
func TestSlackFitCountsItems(t *testing.T) {
	f := ruletest.Ladder(1, 1, 6, 70*ms, serving.DropLate)
	for n, items := range []int{2, 3, 4} {
		ruletest.AddWaiting(f, n+1, items, serving.Time(40+n)*serving.Time(ms))
	}
	NewSlackFit().Route(ruletest.ViewOf(f))
	if i := f.Ready(0)[0]; i.Queue().Len() != 2 || i.Queue().Items() != 5 {
		t.Errorf("%d queries of %d items, want the first two of 2 and 3", i.Queue().Len(), i.Queue().Items())
	}
}
