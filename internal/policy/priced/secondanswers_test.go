package priced

import (
	"math"
	"testing"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// A large variant, of 14 ms for a query and accuracy 1, and a small one of 3 ms and 0.8: it is right in all answers of
// the half of which it is sure, and in 0.6 of the others.
func newUnsureLab() *lab {
	l := newLab([]service{{slo: 100, stages: [][]model{{{1, 4, 10}, {0.8, 2, 1}}}}}, nil)
	better := []serving.VariantAccuracy{{Variant: 0, Accuracy: 1}}
	l.spec.Stages[0].Confidences = []serving.Confidence{{Variant: 1, Bins: []serving.ConfidenceBin{
		{From: 0, Share: 0.5, Accuracy: 0.6, Others: better}, {From: 0.5, Share: 0.5, Accuracy: 1, Others: better},
	}}}
	return l
}

// answered adds a task that the small variant has answered.
func (l *lab) answered(h serving.Hint, left float64) *lab {
	return l.add(fleet.Work{Items: 1, Pin: serving.None, Hint: h}, left)
}

// On idle machines a better answer costs nothing: the unsure one is improved, and the sure one given, since none is
// better. With 10 ms left no better answer is in time.
func TestUnsureAnswersAreImproved(t *testing.T) {
	for _, c := range []struct {
		hint    serving.Hint
		left    float64
		want    []string
		settled int
	}{{1, 50, []string{"0: 1"}, 0}, {2, 50, nil, 1}, {1, 10, nil, 1}} {
		l := newUnsureLab().answered(c.hint, c.left)
		l.want(t, "an answer", c.want...)
		if got := len(l.view.Settled()); got != c.settled {
			t.Errorf("hint %d with %v ms left: %d answers are given, want %d", c.hint, c.left, got, c.settled)
		}
	}
}

// A stage of 30 ms follows, where a task is taken to wait 17 ms at most. With 70 ms left the unsure answer is improved,
// which takes 14 ms. With 40 ms left the stage would be late behind a better answer: the one that there is goes on at
// once.
func TestAnswersGoOnWhileThereIsTime(t *testing.T) {
	for _, c := range []struct {
		left    float64
		want    []string
		settled int
	}{{70, []string{"0: 1"}, 0}, {40, nil, 1}} {
		l := newLab([]service{{slo: 100, stages: [][]model{{{1, 4, 10}, {0.8, 2, 1}}, {{1, 29, 1}}}}}, nil)
		l.spec.Stages[0].Confidences = newUnsureLab().spec.Stages[0].Confidences
		l.answered(1, c.left)
		l.want(t, "an answer", c.want...)
		if got := len(l.view.Settled()); got != c.settled {
			t.Errorf("with %v ms left %d answers go on, want %d", c.left, got, c.settled)
		}
	}
}

// At 600 queries a second the small variant alone, 6 ms for four, takes 0.9 of the machine: a better answer for 14 ms
// would cost first answers. Of many unsure ones a few wait in case the machine is free after all.
func TestDearTimeIsForFirstAnswers(t *testing.T) {
	l := newUnsureLab().at(1000).come(0, 600)
	for range 40 {
		l.answered(1, 60)
	}
	for range 4 {
		l.wait(0, 60)
	}
	l.Route(&l.view)
	if got := len(l.view.Settled()); got < 40-mostMarginal {
		t.Errorf("%d of 40 answers are given, want all but %d at most", got, mostMarginal)
	}
}

// What a first answer brings beside its accuracy is what unsure queries are worth afterwards: where time costs nothing
// half of them gain 0.4. With less left than the large variant takes it is nothing.
func TestFirstAnswersCountOnSecondOnes(t *testing.T) {
	l := newUnsureLab().wait(0, 50)
	l.Route(&l.view)
	x, a := &l.stages[0], &l.apps[0]
	for k := range l.machines.groups[0].options {
		o := &l.machines.groups[0].options[k]
		first := x.firstOf(o)
		if o.variant == 0 {
			if first != nil {
				t.Error("the large variant counts on second answers")
			}
			continue
		}
		if got := first.worth(0, a.step(0.08)); math.Abs(got-0.2) > 0.01 {
			t.Errorf("with 80 ms left a first answer counts on %v, want 0.2", got)
		}
		if got := first.worth(0, a.step(0.005)); got != 0 {
			t.Errorf("with 5 ms left a first answer counts on %v", got)
		}
	}
}
