package priced

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Answers are 0.8 accurate where 0.9 is asked for, and the best variant has 1. So they are a tenth short, and in a
// second accuracy counts 6 * 0.1 more. What a variant of 0.8 loses is then 1.6 * 0.2 = 0.32, where it was 0.2. Its
// answer must not be worth less for that: the value of an answer rises by 0.6 * 0.2 = 0.12.
func TestAccuracyCountsMoreBelowItsTarget(t *testing.T) {
	l := newLab([]service{{slo: 100, stages: [][]model{{{1, 0, 20}, {0.8, 0, 10}}}}}, nil)
	l.spec.Apps[0].AccuracyTarget = 0.9
	l.build(&l.view)
	x, fast := &l.stages[0], &l.machines.groups[0].options[1]
	look := func(second int, accuracy float64) {
		l.at(1000 * float64(second))
		for range 10 {
			l.seen.Answer(0, accuracy)
		}
		l.keepTargets(&l.view)
		l.weighServing()
	}
	look(0, 0.8)
	near(t, "the loss of the fast variant before a second is over", x.loss(fast), 0.2)
	look(1, 0.8)
	near(t, "its loss below the target", x.loss(fast), 0.32)
	near(t, "the value of an answer", x.value, 1.25+0.12)
	near(t, "what a fast answer brings", x.value-x.loss(fast), 1.25-0.2)
	look(2, 0.95)
	near(t, "its loss after a second of 0.05 more than asked for", x.loss(fast), (1.6-0.3)*0.2)
	for second := range 20 {
		look(3+second, 0.5)
	}
	near(t, "its loss after long", x.loss(fast), 3*0.2)
	l.spec.Apps[0].AccuracyTarget = 0
	look(30, 0.5)
	near(t, "its loss without a target", x.loss(fast), 0.2)
}

// A constraint that is broken by 0.5 moves a multiplier of 1 a second by 0.5. A look after an hour counts as 3 s.
func TestMultipliersFollowTheirConstraints(t *testing.T) {
	var m multiplier
	second := serving.Time(time.Second)
	if m.due(second-1) || !m.due(second) {
		t.Error("looks come each second")
	}
	m.move(second, 1, 0.5)
	near(t, "the multiplier", m.more, 0.5)
	m.move(3600*second, 1, 0.25)
	near(t, "the multiplier after an hour", m.more, 1.25)
	m.move(3610*second, 1, 5)
	near(t, "the highest multiplier", m.more, mostMore)
	m.move(3620*second, 1, -5)
	near(t, "the least multiplier", m.more, 0)
}
