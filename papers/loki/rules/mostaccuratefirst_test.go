package rules

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/ruletest"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

const ms = time.Millisecond

// accurate is a fleet with one instance for each of three variants of ladder: accuracies 0.6, 0.7 and 0.8, batches of 4
// in 16, 32 and 48 ms: 250, 125 and 83.3 items/s.
func accurate() *fleet.Fleet {
	f := ruletest.Ladder(3, 3, 4, 100*ms, serving.DropLate)
	for k, i := range f.Ready(0) {
		f.UnwantAll(i)
		f.Want(i, k)
		f.Refresh(i)
	}
	return f
}

// send has so many queries a second come evenly for a time, each with time left, and returns how many each instance
// got.
func send(o *MostAccurateFirst, f *fleet.Fleet, from serving.Time, rate int, lasts, left time.Duration) []int {
	got := make([]int, 3)
	for n := range int(float64(rate) * lasts.Seconds()) {
		now := from.Add(time.Duration(n) * time.Second / time.Duration(rate))
		ruletest.AddWaiting(f, n+1, 1, now.Add(left))
		o.Route(ruletest.ViewAt(f, now))
		for k, i := range f.Ready(0) {
			got[k] += i.Queue().Len()
			for i.Queue().Len() > 0 {
				r := i.Queue().Head()
				f.Dequeue(r)
				f.Release(r)
			}
		}
	}
	return got
}

// At 150 queries/s the most accurate instance is filled to 83.3/1.05 = 79.4 of them, the next gets the other 70.6 and
// the least accurate none. At 600/s, more than all carry, each gets in proportion to what it carries.
func TestMostAccurateFirstFills(t *testing.T) {
	for _, c := range []struct {
		rate int
		want [3]float64 // queries/s
	}{
		{50, [3]float64{0, 0, 50}},
		{150, [3]float64{0, 150 - 79.37, 79.37}},
		{300, [3]float64{300 - 79.37 - 119.05, 119.05, 79.37}},
		{600, [3]float64{600 * 250 / 458.33, 600 * 125 / 458.33, 600 * 83.33 / 458.33}},
	} {
		f, o := accurate(), NewMostAccurateFirst()
		send(o, f, 0, c.rate, 2*time.Second, 100*ms) // the first second follows the plan's shares
		got := send(o, f, serving.Time(2*time.Second), c.rate, 2*time.Second, 100*ms)
		for k := range got {
			if math.Abs(float64(got[k])/2-c.want[k]) > 2 {
				t.Errorf("%d/s: %v queries in two seconds, want %v a second", c.rate, got, c.want)
				break
			}
		}
	}
}

// A query with 40 ms left cannot wait for batches of 48 ms: it goes to the most accurate instance with capacity left
// that is fast enough. With 20 ms left that is the fastest, with 10 ms none, and it stays.
func TestMostAccurateFirstReroutes(t *testing.T) {
	for _, c := range []struct {
		left time.Duration
		want int
	}{
		{60 * ms, 2}, {40 * ms, 1}, {20 * ms, 0}, {10 * ms, 2},
	} {
		f, o := accurate(), NewMostAccurateFirst()
		send(o, f, 0, 20, 2*time.Second, 100*ms)
		got := send(o, f, serving.Time(2*time.Second), 20, 50*ms, c.left)
		if got[c.want] != 1 {
			t.Errorf("%v left: %v, want it on instance %d", c.left, got, c.want)
		}
	}
}

// What was left over of an instance is used up by rerouting until the next table.
func TestReroutingEndsWithTheCapacityLeftOver(t *testing.T) {
	f, o := accurate(), NewMostAccurateFirst()
	send(o, f, 0, 190, 2*time.Second+10*ms, 100*ms)
	// 79.4 of 190 go to the last, 110.6 to the second, which has 119 - 110.6 = 8.4 left: it takes eight of ten.
	s := o.Of(0)
	before := s.spare[1]
	if math.Abs(before-8.4) > 1.5 {
		t.Fatalf("%v items left over, want 8.4", before)
	}
	s.Share[0], s.Share[1], s.Share[2] = 0, 0, 1
	s.spare[0] = 0
	s.Reset()
	got := send(o, f, serving.Time(2*time.Second+20*ms), 200, 50*ms, 40*ms)
	if got[1] != int(before) || got[2] != 10-int(before) {
		t.Errorf("%v: want %d rerouted", got, int(before))
	}
}
