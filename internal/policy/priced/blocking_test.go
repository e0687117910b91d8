package priced

import (
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// Tasks with 100 and 150 ms to spare keep half and a quarter of a machine busy, and are about as urgent: each finds
// those of the other before it, and they need 0.75 of one at once. Those with a second to spare keep two busy, and need
// them beside the others. Another pool is nobody's concern.
func TestNeedsCountWhatIsAsUrgent(t *testing.T) {
	r := &Rule{stages: make([]stage, 4)}
	for s, c := range []struct {
		slack, takes float64
		pool         int32
	}{{0.1, 0.5, 0}, {0.15, 0.25, 0}, {1, 2, 0}, {0.1, 7, 1}} {
		x := &r.stages[s]
		x.pool, x.longest, x.classes = c.pool, c.slack+0.01, []class{{least: 0.01, takes: c.takes}}
	}
	r.sortUrgent()
	r.findNeeds()
	for s, want := range []float64{0.75, 0.75, 2.75, 7} {
		near(t, "the machines that are needed", r.stages[s].classes[0].needs, want)
	}
}

// Urgent tasks of stage 1 are worth 10 a second, and one of them can wait 100 ms. While a batch of another stage runs
// for 300 ms those of 200 ms are lost: 2. Of 800 ms only those until another machine is free count, 400 ms: 4. A batch
// of their own stage costs as much, but of other stages nothing; and where they can begin beside a batch, only one of
// their own costs it.
func TestWhatABatchBlocks(t *testing.T) {
	r := &Rule{stages: []stage{{id: 0}, {id: 1}}}
	r.machines.groups = []group{{blocked: []blocked{{stage: 1, rate: 10, slack: 0.1, until: 0.4}}}}
	check := func(why string, own int, seconds, want, ofOthers float64) {
		t.Helper()
		cost, others := r.blocks(0, seconds, &r.stages[own])
		near(t, "what is lost "+why, cost, want)
		near(t, "what others lose "+why, others, ofOthers)
	}
	check("in 50 ms", 0, 0.05, 0, 0)
	check("in 300 ms", 0, 0.3, 2, 2)
	check("in 800 ms", 0, 0.8, 4, 4)
	check("of its own stage", 1, 0.3, 2, 0)
	r.machines.groups[0].blocked[0].overlaps = true
	check("where they begin beside it", 0, 0.3, 0, 0)
	check("of its own stage, where they begin beside others", 1, 0.3, 2, 0)
}

// One machine serves queries of 5 ms that have 40, and one of 235 ms that has seconds. 60 urgent ones come a second,
// worth 75: in 235 ms less the 35 that one can wait, 15 of that would be lost for one answer of 1.25. So the machine
// idles for them although its time is not scarce, and looks again after 5 ms. Where one comes in a second, 0.25 would
// be lost, and it can begin beside the long one.
func TestAMachineIdlesForUrgentQueries(t *testing.T) {
	for _, c := range []struct {
		rate int
		want []string
		asks serving.Time
	}{{60, nil, 1_005_000_000}, {1, []string{"1: 1"}, serving.Never}} {
		l := newLab([]service{
			{slo: 40, stages: [][]model{{{1, 0, 5}}}}, {slo: 5000, stages: [][]model{{{1, 235, 0}}}},
		}, nil)
		l.at(1000).come(0, c.rate).wait(1, 4000).want(t, "a long batch could begin", c.want...)
		if l.machines.groups[0].scarce() {
			t.Error("time is scarce")
		}
		if got := l.view.Asked(); got != c.asks {
			t.Errorf("at %d queries/s the rule wants to be called at %v, want %v", c.rate, got, c.asks)
		}
	}
}

// One of two machines is free, and the other one is in 30 ms. A query that a batch of 10 ms leaves waits for that batch
// and one more like it, 20 ms, and one that a batch of 50 ms leaves for the other machine. Where a second machine is
// free there is no wait.
func TestHowLongWhatIsLeftWaits(t *testing.T) {
	l := newLab([]service{{slo: 100, stages: [][]model{{{1, 0, 30}}}}}, nil, nil)
	l.build(&l.view)
	l.updatePrices(&l.view)
	x := &l.stages[0]
	near(t, "the time until another machine is free", l.machines.untilNext(x, 0, &l.view), leastWait)
	l.run(l.all[0], 0, 100)
	l.build(&l.view)
	near(t, "the time until another machine is free", l.machines.untilNext(x, 0, &l.view), 0.03)
	x.until = append(x.until[:0], 0.03)
	near(t, "the wait of what a batch of 10 ms leaves", x.waitFor(0, 0.01), x.behind+0.02)
	near(t, "the wait of what a batch of 50 ms leaves", x.waitFor(0, 0.05), x.behind+0.03)
}
