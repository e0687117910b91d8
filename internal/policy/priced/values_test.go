package priced

import "testing"

// An answer is worth 1.25. A query takes 10 ms, and two take 15; a second costs 20.
//
//	less than 10 ms left  nothing is in time: 0
//	10 ms                 alone: 1.25 - 20*10 ms = 1.05
//	15 ms                 with another one, if that comes in time: 1.25 - 20*7.5 ms = 1.1
func TestWorthByTimeLeft(t *testing.T) {
	for _, c := range []struct {
		rate   float64 // queries/s
		left   float64 // s
		scarce bool
		want   float64
	}{{100, 0.009, true, 0}, {100, 0.0105, true, 1.05}, {100, 0.02, true, 1.1}, {0, 0.02, true, 1.05}} {
		r, x := tabled(c.rate, 20)
		near(t, "the value", x.valueOf(&r.apps[0], 0, c.left, 1, 1), c.want)
	}
	// Half of a query's value is worth half of 1.25, and costs as much.
	r, x := tabled(0, 20)
	near(t, "the value of a half", x.valueOf(&r.apps[0], 0, 0.02, 0.5, 1), 1.25/2-0.2)
	// At 130 a second an answer costs 1.3 alone. What would lose is left undone, and is worth 0.
	r, x = tabled(0, 130)
	near(t, "the value of what costs more than it brings", x.valueOf(&r.apps[0], 0, 0.1, 1, 1), 0)
}

// tabled is a rule with one stage whose table is computed.
func tabled(rate, price float64) (*Rule, *stage) {
	l := newLab([]service{{slo: 100, stages: [][]model{{{1, 5, 5}}}}}, nil)
	l.build(&l.view)
	l.updatePrices(&l.view)
	x := &l.stages[0]
	x.rate, l.machines.groups[0].price = rate, price
	l.tabulate(&l.apps[0], x)
	return l.Rule, x
}

// A query of 100 ms needs two stages. The second one takes 20 ms, and a second costs 10: there it is worth 1.25 - 0.2
// = 1.05 as long as 20 ms are left, and what it waits, a quarter of its share of 2/3 of the objective. So the first
// stage brings 1.05 if it leaves 20 + 17 ms, and nothing if it leaves less. Of what is left after a batch of 10 ms it
// is worth 1.05 - 0.1.
func TestWorthBeforeALaterStage(t *testing.T) {
	l := newLab([]service{{slo: 100, stages: [][]model{{{1, 0, 10}}, {{1, 0, 20}}}}}, nil)
	l.build(&l.view)
	l.updatePrices(&l.view)
	l.machines.groups[0].price = 10
	a, first, second := &l.apps[0], &l.stages[0], &l.stages[1]
	for _, x := range []*stage{second, first} {
		l.tabulate(a, x)
	}
	near(t, "what waits at the second stage", second.valueOf(a, 0, 0.05, 1, 1), 1.05)
	near(t, "what the first stage brings with time left", first.brings(a, 0.05), 1.05)
	near(t, "what it brings with none for the wait", first.brings(a, 0.025), 0)
	near(t, "what waits at the first stage", first.valueOf(a, 0, 0.06, 1, 1), 0.95)
	near(t, "the value of the last stage does not fall", second.brings(a, 0.001), 1.25)
}
