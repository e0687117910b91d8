package priced

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// longLab has one machine whose runs of n items of length L take 20 ms + n L/64 10 ms, padded to the longest, and
// queries of an item with these lengths that wait. A batch of several runs has a part of the 20 ms once.
func longLab(once time.Duration, lengths ...int32) *lab {
	l := newLab([]service{{slo: 2000, stages: [][]model{{{1, 20, 10}}}}}, nil)
	l.spec.Variants[0].Pads = true
	takes := func(n int, length int32) time.Duration {
		return 20*time.Millisecond - once + time.Duration(n)*time.Duration(length)*10*time.Millisecond/64
	}
	var m serving.Measurements
	for _, n := range []int{1, 4} {
		m.Latency = append(m.Latency, serving.LatencyPoint{Items: n, Concurrency: 1, Mean: takes(n, 64)})
		for _, length := range []int32{16, 640} {
			m.Length = append(m.Length, serving.LengthPoint{Reference: 64, Length: length, Items: n,
				Mean: takes(n, length)})
		}
	}
	l.fleet.SetProfile(&profile.ByLength{
		Profile: l, Stretches: profile.NewStretches(l.spec, m), Overheads: []time.Duration{once},
		Measured: []time.Duration{once},
	})
	l.fleet.ProfileChanged()
	for _, length := range lengths {
		l.add(fleet.Work{Items: 1, Length: length, Pin: serving.None}, 2000)
	}
	return l
}

// grown is the best of the batches that begin with the first task and, at a price for each second of the machine, take
// up others. What is left is worth nothing.
func (l *lab) grown(price float64) *candidate {
	l.build(&l.view)
	l.updatePrices(&l.view)
	x, c := &l.stages[0], &candidate{}
	for k := range x.tables {
		clear(x.tables[k].values)
	}
	x.collect(l.Rule, &l.view, l.fleet.Central(0))
	w := l.way(x, 0, &l.machines.groups[0].options[0], price)
	l.stretch(&l.view, &w)
	l.grow(&l.view, c, &w, 0, false)
	return c
}

// A query brings 1.25 in time. It joins where the time by which it makes the batch longer costs less.
//
//	640, then 640   a run of two, 20 + 200 ms: 100 more, which cost 1.2 at 12 a second and 1.3 at 13
//	640, then 64    a run of its own, 20 + 10 ms: 30 more, which cost 0.36 at 12
//	64, then 640    a run of its own, 20 + 100 ms: 120 more, which cost 1.44 at 12
//	64, then 80     a run of two at length 80, 20 + 25 ms: 15 more, 2.5 of them for padding, which cost 0.18 at 12
//	64, then 81     17 of padding are more than a run of its own costs, 20 + 12.66 ms: it would pay, but the
//	                first alone brings 1.25 in 30 ms, more a second than 2.5 in 62.66
//	64, then 81     a batch has 15 of the 20 ms once: 5 + 12.66 ms more, and 2.5 in 47.66 are more a second
//
// One that does not join keeps none behind it from joining.
func TestALengthJoinsThatPaysForItsTime(t *testing.T) {
	for _, c := range []struct {
		price   float64
		once    time.Duration
		lengths []int32
		list    []int32
		takes   float64 // ms
	}{
		{12, 0, []int32{640, 640}, []int32{0, 1}, 220},
		{13, 0, []int32{640, 640}, []int32{0}, 120},
		{13, 0, []int32{640, 640, 64}, []int32{0, 2}, 150},
		{12, 0, []int32{64, 640}, []int32{0}, 30},
		{12, 0, []int32{64, 80}, []int32{0, 1}, 45},
		{12, 0, []int32{64, 640, 80}, []int32{0, 2}, 45},
		{12, 0, []int32{64, 81}, []int32{0}, 30},
		{12, 15 * time.Millisecond, []int32{64, 81}, []int32{0, 1}, 47.66},
	} {
		got := longLab(c.once, c.lengths...).grown(c.price)
		if !slices.Equal(got.list, c.list) || math.Abs(1e3*got.takes-c.takes) > 0.2 {
			t.Errorf("at %v a second, of lengths %v those at %v run for %.2f ms, want %v for %v", c.price, c.lengths,
				got.list, 1e3*got.takes, c.list, c.takes)
		}
		// It brings that less the time, whatever joined.
		near(t, "the gain", got.gain, 1.25*float64(len(c.list))-c.price*got.takes)
	}
}
