package priced

import (
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// Two stages of 10 and 30 ms share an objective of 100 ms as they need time: 25 and 75 ms. The first may take all but
// the 30 that the second needs at the least, and the second all but 10. Eight machines lend what the other stage can
// spare, but for 2 of 8 parts: a later batch of the first may take 25 + (70-25)*3/4 ms. Two machines lend nothing.
func TestTheObjectiveIsShared(t *testing.T) {
	for _, c := range []struct {
		machines int
		within   float64 // of the first stage, s
	}{{8, 0.05875}, {2, 0.025}} {
		l := newLab([]service{{slo: 100, stages: [][]model{{{1, 0, 10}}, {{1, 0, 30}}}}},
			make([][]serving.VariantID, c.machines)...)
		l.build(&l.view)
		first, second := &l.stages[0], &l.stages[1]
		near(t, "the first stage's budget", first.budget, 0.025)
		near(t, "the second stage's budget", second.budget, 0.075)
		near(t, "the longest that the first may take", first.longest, 0.07)
		near(t, "the longest that the second may take", second.longest, 0.09)
		near(t, "what a later batch of the first may take", first.within, c.within)
		near(t, "the wait at the second", second.delta, 0.25*0.075)
	}
}

// A task that is left waits longer where few machines serve its stage: three slots' part of its budget, between 0.04
// and 0.2 of it.
func TestFewMachinesMakeTasksWait(t *testing.T) {
	for machines, want := range map[int]float64{2: 0.2, 30: 0.1, 100: 0.04} {
		l := newLab([]service{{slo: 100, stages: [][]model{{{1, 0, 10}}}}}, make([][]serving.VariantID, machines)...)
		l.build(&l.view)
		near(t, "the wait", l.stages[0].behind, want*0.1)
	}
}

// A query brings four items to the second stage. Each of the tasks there is worth a quarter of its query, and all of
// them run in one batch where that leaves it time: four take 40 ms, and with the 10 of the first stage that is within
// 0.6 of 100 ms. Of 60 ms it leaves none: half of them, 2, take 20.
func TestSiblingsShareAQuerysValue(t *testing.T) {
	for slo, siblings := range map[float64]int{100: 4, 60: 2} {
		l := newLab([]service{{slo: slo, stages: [][]model{{{1, 0, 10}}, {{1, 0, 10}}}}}, nil, nil)
		l.spec.Stages[0].Next[0].FanOut = 4
		l.build(&l.view)
		x := &l.stages[1]
		near(t, "the tasks of a query", x.tasks, 4)
		near(t, "the value of each", x.value, 1.25/4)
		if x.siblings != siblings {
			t.Errorf("with %v ms, %d run in one batch, want %d", slo, x.siblings, siblings)
		}
	}
	// One of four that is left waits alone: the others are paid for, and without it they are worth nothing.
	x := stage{tasks: 4}
	list := []place{{query: 1}, {query: 2}, {query: 2}}
	x.shareValue(len(list), func(k int) *place { return &list[k] })
	near(t, "the last of four", list[0].part, 4)
	near(t, "the third of four", list[1].part, 2)
}
