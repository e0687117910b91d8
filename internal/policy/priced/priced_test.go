package priced

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// One app with an accurate variant, of 20 ms for a query and 50 for four, and one of 5 and 8 ms that has 0.8 of its
// accuracy.
func ladder() []service {
	return []service{{slo: 100, stages: [][]model{{{1, 10, 10}, {0.8, 4, 1}}}}}
}

// On idle machines time costs nothing: a lone query begins at once, on the most accurate variant that is in time. With
// 10 ms left that is the fast one. With 4 ms left none is, and the query has no batch.
func TestALoneQueryBeginsAtOnce(t *testing.T) {
	for _, c := range []struct {
		left float64
		want []string
	}{{100, []string{"0: 1"}}, {10, []string{"1: 1"}}} {
		newLab(ladder(), nil, nil).wait(0, c.left).want(t, "idle machines", c.want...)
	}
	l := newLab(ladder(), nil).wait(0, 4)
	l.Route(&l.view)
	if l.stages[0].timely() != 0 {
		t.Error("a query with 4 ms left could be in time")
	}
}

// One machine carries at most 500 queries/s, in batches of four on the fast variant, of 8 ms. At 800 a second its
// time is worth four answers for each 8 ms, 500*(1.25 - 0.2) = 525 a second: the 50 ms of four accurate answers would
// cost 26. At 20 a second it is idle most of the time, and they are accurate.
func TestOverloadIsServedFast(t *testing.T) {
	for _, c := range []struct {
		rate int
		want string
	}{{800, "1: 4"}, {20, "0: 4"}} {
		l := newLab(ladder(), nil).at(1000).come(0, c.rate).wait(0, 50, 50, 50, 50)
		l.want(t, "four queries wait", c.want)
	}
}

// Of two apps the one whose batch brings more for the machine's time goes first: both are worth as much, and one takes
// half of the time.
func TestTheHighestScoreBegins(t *testing.T) {
	apps := []service{{slo: 100, stages: [][]model{{{1, 0, 20}}}}, {slo: 100, stages: [][]model{{{1, 0, 10}}}}}
	l := newLab(apps, nil).at(1000).come(0, 100).come(1, 100).wait(0, 22).wait(1, 22)
	l.want(t, "overload", "1: 1")
}

// A batch that loses 0.3 waits for the next query if the machine loses less until then. Time costs 2 a second, and at
// 10 queries a second the next one comes after 0.1 s: that costs 0.2. At 5 a second it costs 0.4. It need not wait
// longer than until its edge, after which no query could join: 0.1 s of time again. Where time is not scarce a machine
// does not idle for a better batch.
func TestABatchWaitsWhereIdlingCostsLess(t *testing.T) {
	for _, c := range []struct {
		rate, edge, least float64
		want              bool
	}{{10, 1, 0, true}, {5, 1, 0, false}, {5, 0.1, 0, true}, {5, 0, 0, false}, {10, 1, 2, false}} {
		y := group{price: 2, least: c.least}
		x := candidate{batch: batch{gain: -0.3}, edge: serving.Time(c.edge * float64(time.Second))}
		if got := y.pays(&x, 0, c.rate); got != c.want {
			t.Errorf("at %v queries/s, with %v s to the edge and a least price of %v: waits %v, want %v",
				c.rate, c.edge, c.least, got, c.want)
		}
	}
}
