package priced

import (
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// One machine serves queries of 5 ms that have 40 and ones of 300 ms that have 1000. Both take twice as long while they
// run at once.
func overlapLab(urgent, running float64) *lab {
	l := newLab([]service{
		{slo: 40, stages: [][]model{{{1, 0, 5}}}}, {slo: 1000, stages: [][]model{{{1, 300, 0}}}},
	}, nil)
	return l.run(l.all[1], 1, running).wait(0, urgent)
}

// A query with 20 ms left cannot wait for 300. Beside the batch that runs it takes 10, and delays that by 5. It begins
// if it is in time so, if what runs is, and if it cannot wait.
func TestUrgentQueriesBeginBesideLongBatches(t *testing.T) {
	overlapLab(20, 900).want(t, "both are in time", "0: 1")
	overlapLab(20, 304).want(t, "what runs has 4 ms to spare")
	overlapLab(9, 900).want(t, "the query needs 10 ms beside what runs")
	overlapLab(400, 900).want(t, "the query is in time after what runs")
}

// The machine is free in 300 ms, and a query of 5 that comes after others waits a fifth of its 40 ms besides. So one
// with less than 313 ms is in a hurry.
func TestWhoIsInAHurry(t *testing.T) {
	for left, want := range map[float64]bool{312: true, 314: false} {
		l := overlapLab(left, 900)
		l.build(&l.view)
		l.updatePrices(&l.view)
		x := &l.stages[0]
		x.collect(l.Rule, &l.view, l.fleet.Central(0))
		if got := x.hurried(l.view.Now); got != want {
			t.Errorf("with %v ms left, in a hurry %v, want %v", left, got, want)
		}
	}
}

// Its 5 ms of work cost three times the price: at 75 a second 1.125 of the 1.25 that it is worth, and at 100 more.
func TestTimeBesideIsDear(t *testing.T) {
	for price, want := range map[float64]int{75: 1, 100: 0} {
		l := overlapLab(20, 900)
		l.build(&l.view)
		l.updatePrices(&l.view)
		l.machines.groups[0].price = price
		b := l.bestOverlap(&l.view, &l.stages[0])
		if b.n != want {
			t.Errorf("at %v a second a batch of %d, want %d", price, b.n, want)
		}
		if b.n > 0 {
			near(t, "its gain", b.gain, 1.25-3*price*0.005)
		}
	}
}

// What takes 5 ms alone and 10 together has half the speed beside what runs. Beside 300 ms it takes 10 and delays them
// by 5. Beside 4 ms those take 8, and it has advanced by 4 then: it takes 9.
func TestTimeBeside(t *testing.T) {
	o := option{even: []float64{0, 0.005}, together: []float64{0, 0.01}}
	for _, c := range []struct{ rest, takes, delay float64 }{{0.3, 0.01, 0.005}, {0.004, 0.009, 0.004}} {
		takes, delay := o.overlapped(1, 1, []underway{{rest: 0.001}, {rest: c.rest}})
		near(t, "what it takes", takes, c.takes)
		near(t, "the delay", delay, c.delay)
	}
}

// A delay of 5 ms costs a graph what its query is worth less then: here 1 with 60 ms left, and 0.1 with less. Two tasks
// have 62 ms when their batch ends.
func TestADelayCostsLaterStages(t *testing.T) {
	r, _ := firstOfTwo()
	r.underway = []underway{{tasks: 2, slack: 0.05, left: 0.062}}
	for delay, want := range map[float64]float64{0.0005: 0, 0.005: 1.8} {
		cost, inTime := r.costOfDelay(delay)
		if near(t, "the cost", cost, want); !inTime {
			t.Errorf("late by a delay of %v s", delay)
		}
	}
	if _, inTime := r.costOfDelay(0.06); inTime {
		t.Error("in time although the delay is longer than the slack")
	}
}

// Where eight slots serve a stage some machine is always about to be free: none of its batches begins beside others.
func TestManyMachinesRunNothingBeside(t *testing.T) {
	apps := []service{{slo: 40, stages: [][]model{{{1, 0, 5}}}}, {slo: 1000, stages: [][]model{{{1, 300, 0}}}}}
	for machines, want := range map[int]bool{7: true, 8: false} {
		l := newLab(apps, make([][]serving.VariantID, machines)...)
		l.build(&l.view)
		if l.overlap != want {
			t.Errorf("%d machines: batches begin beside others %v, want %v", machines, l.overlap, want)
		}
	}
}
