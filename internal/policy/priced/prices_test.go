package priced

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// priceAt returns the price of a second of the one machine of a lab, where so many queries of one item come a second.
func priceAt(rate int, models ...model) float64 {
	l := newLab([]service{{slo: 200, stages: [][]model{models}}}, nil).at(1000).come(0, rate)
	l.build(&l.view)
	l.updatePrices(&l.view)
	return l.machines.groups[0].dual
}

// A query takes 20 ms on the accurate variant and 10 on one that has 0.8 of its accuracy, so a machine carries 50 or
// 100 of them a second. An answer is worth 1.25.
//
//	20/s  time is left: it costs nothing
//	75/s  half run on each: 10 ms more are worth the 0.2 of accuracy that they gain, 20 a second
//	200/s half are lost: the time of a fast answer is worth the answer, (1.25 - 0.2) / 10 ms = 105 a second
func TestPricesByHand(t *testing.T) {
	for _, c := range []struct {
		rate int
		want float64
	}{{20, 0}, {75, 20}, {200, 105}} {
		got := priceAt(c.rate, model{1, 0, 20}, model{0.8, 0, 10})
		if got < 0.97*c.want || got > 1.03*c.want+1e-9 { // blurred
			t.Errorf("at %d queries/s a second costs %v, want %v", c.rate, got, c.want)
		}
	}
}

// Nothing arrives, and 40 queries of 10 ms wait. They are spread over 0.8 of the objective of 200 ms: 250 a second,
// where a machine carries 100. So time is worth what they are, 1.25 / 10 ms = 125 a second, before any rate shows them.
func TestWhatWaitsRaisesThePrice(t *testing.T) {
	l := newLab([]service{{slo: 200, stages: [][]model{{{1, 0, 10}}}}}, nil)
	for range 40 {
		l.wait(0, 200)
	}
	l.build(&l.view)
	l.updatePrices(&l.view)
	if got := l.machines.groups[0].dual; got < 121 || got > 129 {
		t.Errorf("a second costs %v, want 125", got)
	}
}

// Batches are believed to take 100 ms and took 50: the machine has twice the time, and what 100 queries/s of 20 ms
// would need is there.
func TestSupplyIsWhatBatchesReallyTake(t *testing.T) {
	l := newLab([]service{{slo: 200, stages: [][]model{{{1, 0, 20}}}}}, nil).at(1000).come(0, 80)
	l.build(&l.view)
	l.updatePrices(&l.view)
	if l.machines.groups[0].dual == 0 {
		t.Error("80 queries/s where 50 are carried cost nothing")
	}
	for range 1000 {
		l.machines.paces[0].add(50*time.Millisecond, 100*time.Millisecond)
	}
	l.prices.outdated = true
	l.updatePrices(&l.view)
	if got := l.machines.groups[0].dual; got != 0 {
		t.Errorf("80 queries/s where 100 are carried cost %v a second", got)
	}
}

// A batch of four takes 40 ms, 10 for each, where one query takes 25. Four come within the budget of 200 ms less those
// 40 at 25 queries/s, and not at 20: then three do, in 35 ms.
func TestABatchMustFill(t *testing.T) {
	o := option{limit: 4, seconds: []float64{0, 0.025, 0.03, 0.035, 0.04}}
	near(t, "the time of an item at 25/s", o.timePerItem(1, 25, 0.2, 0.2), 0.01)
	near(t, "the time of an item at 20/s", o.timePerItem(1, 20, 0.2, 0.2), 0.035/3)
	near(t, "the time of an item at 0/s", o.timePerItem(1, 0, 0.2, 0.2), 0.025)
	near(t, "the time of an item with an objective of 20 ms", o.timePerItem(1, 25, 0.02, 0.02), 0)
}

// Prices hold for 10 ms and a little for each entry. Where the only objective is 10 s they hold for a hundredth of it.
func TestWhenPricesAreDue(t *testing.T) {
	for _, c := range []struct {
		slo  float64
		want serving.Time
	}{{200, 10_010_000}, {10_000, 100_000_000}} {
		l := newLab([]service{{slo: c.slo, stages: [][]model{{{1, 0, 10}}}}}, nil)
		l.build(&l.view)
		l.updatePrices(&l.view)
		if l.prices.due != c.want {
			t.Errorf("with an objective of %v ms prices are due at %v, want %v", c.slo, l.prices.due, c.want)
		}
	}
}
