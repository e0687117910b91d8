package priced

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// One app of two is called 100 times in three seconds, and misses 13 queries where it may miss 1 in 100. So 0.12 are
// missed that may not be, and in a second serving counts 4 * 0.12 = 0.48 more: for both apps, since a fast answer of
// the other one may save it.
func TestServingCountsMoreWhileQueriesAreMissed(t *testing.T) {
	for _, c := range []struct {
		missed int
		more   float64
	}{{13, 0.48}, {1, 0}, {2, 0}} { // one or two say nothing yet
		l := newLab([]service{
			{slo: 100, stages: [][]model{{{1, 0, 10}}}}, {slo: 100, stages: [][]model{{{1, 0, 10}}}},
		}, nil).at(10_000)
		for k := range 100 {
			l.seen.Add(l.view.Now-100+serving.Time(k), 0)
		}
		for k := range c.missed {
			l.seen.Miss(l.view.Now-100+serving.Time(k), 0)
		}
		l.build(&l.view)
		l.pressure.at = l.view.Now - serving.Time(time.Second)
		l.followMissed(&l.view)
		l.weighServing()
		for s := range l.stages {
			near(t, "the value of an answer", l.stages[s].value, 1.25+c.more)
		}
		l.followMissed(&l.view)
		near(t, "the multiplier at a second look at once", l.pressure.more, c.more)
	}
}

// An app misses none of its queries while it may miss 1 in 100: in a second serving counts 4 * 0.01 less.
func TestServingCountsLessWhenNothingIsMissed(t *testing.T) {
	l := newLab(ladder(), nil).at(1000).come(0, 100)
	l.build(&l.view)
	l.pressure.more = 1
	l.followMissed(&l.view)
	near(t, "the multiplier", l.pressure.more, 0.96)
}
