package priced

import (
	"math"
	"testing"
	"time"
)

// Two tasks that are worth 1.25 each in time, 0.25 each if they are left, on a variant that is a tenth less accurate
// than the best. The machine works 100 ms for them at 3 a second, and others lose 0.2 meanwhile. One batch in ten takes
// 1.1 times what is believed, and the tasks have 105 and 200 ms:
//
//	reward 2*1.25 - left 2*0.25 - loss 2*0.1 - time 3*0.1 - others 0.2 = 1.3
//
// less the risk of the first, 0.1, and of the last, 0: on average 0.05 of the reward of 2.5, so 1.175.
func TestGainOfABatch(t *testing.T) {
	l := newLab([]service{{slo: 400, stages: [][]model{{{1, 0, 50}, {0.9, 0, 50}}}}}, nil)
	l.build(&l.view)
	w := l.way(&l.stages[0], 0, &l.machines.groups[0].options[1], 3)
	sum := newTally()
	sum.add(1.25, 0.25, w.stage.loss(w.option), 0.2)
	sum.add(1.25, 0.25, w.stage.loss(w.option), 0.105)
	near(t, "the gain before any batch has ended", w.gain(&sum, 0.1, 0.1, 0.2), 1.3)
	for k := range 20_000 {
		took := 90 * time.Millisecond
		if k%10 == 0 {
			took = 110 * time.Millisecond
		}
		w.pace.add(took, 100*time.Millisecond)
	}
	w.pace.update()
	if got := w.gain(&sum, 0.1, 0.1, 0.2); math.Abs(got-1.175) > 0.01 {
		t.Errorf("the gain where one batch in ten takes longer is %v, want 1.175", got)
	}
	// Where it is believed to end after 90 ms, 1.1 times that is in time still.
	if got := w.gain(&sum, 0.1, 0.09, 0.2); math.Abs(got-1.3) > 0.01 {
		t.Errorf("the gain of one that ends in time even then is %v, want 1.3", got)
	}
}

// The score of 1 in 100 ms and of 2 in 400 ms is the same: 1/sqrt(0.1) = 2/sqrt(0.4). A batch that brings as much in
// each second, 4 in 400 ms, is better: what its time costs is in its gain. So is one that brings as much in all sooner.
// Where tasks are mixed each second counts: 4 in 400 ms are as good as 1 in 100, and 2 are worse.
func TestScoreLiesBetweenGainAndRate(t *testing.T) {
	w := way{stage: &stage{}, app: &app{slo: 1}}
	near(t, "the difference of scores", w.score(1, 0.1)-w.score(2, 0.4), 0)
	if w.score(4, 0.4) <= w.score(1, 0.1) || w.score(1, 0.1) <= w.score(1, 0.4) {
		t.Error("want the higher gain at the same rate, and the higher rate at the same gain")
	}
	near(t, "the score of a batch of typical length", w.score(3, typicalShare), 3/typicalShare)
	w.stage.mixed = true
	near(t, "the difference of scores where tasks are mixed", w.score(1, 0.1)-w.score(4, 0.4), 0)
	near(t, "the score of a shorter batch", w.score(2, 0.4), 5)
}

// A batch of the same tasks has the same gain, whichever way it is formed.
func TestOneGain(t *testing.T) {
	stages := [][]model{{{1, 20, 10}, {0.8, 10, 5}}}
	form := func(mixed bool) *candidate {
		l := newLab([]service{{slo: 200, stages: stages}}, nil, nil)
		l.at(1000).come(0, 100).wait(0, 60, 60, 60)
		l.build(&l.view)
		l.updatePrices(&l.view)
		x := &l.stages[0]
		x.collect(l.Rule, &l.view, l.fleet.Central(0))
		c := &candidate{}
		w := l.way(x, 0, &l.machines.groups[0].options[0], 2)
		if mixed {
			x.mixed = true
			x.collectMixed(l.Rule, &l.view, l.fleet.Central(0))
			l.formMixed(&l.view, c, &w)
		} else {
			l.formPlain(l.view.Now, c, &w)
		}
		return c
	}
	plain, mixed := form(false), form(true)
	if plain.n != 3 || mixed.n != 3 {
		t.Fatalf("batches of %d and %d tasks, want 3", plain.n, mixed.n)
	}
	near(t, "the difference of gains", plain.gain-mixed.gain, 0)
}
