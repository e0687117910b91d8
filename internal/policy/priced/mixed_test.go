package priced

import (
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// A batch takes 20 ms and 5 for each item, and has up to four. Tasks of three, two and one items wait, with 35 ms left,
// and are worth nothing if they are left. The first alone takes 35 ms, and so do the other two, which bring twice as
// much. The last alone takes 25: two in 35 ms are more in each second.
func TestSmallTasksShareABatch(t *testing.T) {
	l := newLab([]service{{slo: 100, stages: [][]model{{{1, 20, 5}}}}}, nil)
	for _, items := range []int32{3, 2, 1} {
		l.add(fleet.Work{Items: items, Pin: serving.None}, 35)
	}
	if best := l.formed(0, false); best.n != 2 || best.items != 3 {
		t.Errorf("a batch of %d tasks with %d items, want the 2 with 3", best.n, best.items)
	}
}

// formed is the best batch on an option of the first group, of tasks that are taken as mixed. What is left is worth
// nothing, or what the table says.
func (l *lab) formed(option int, table bool) *candidate {
	l.build(&l.view)
	l.updatePrices(&l.view)
	x, c := &l.stages[0], &candidate{}
	for k := range x.tables {
		if !table {
			clear(x.tables[k].values)
		}
	}
	x.collect(l.Rule, &l.view, l.fleet.Central(0))
	if !x.mixed {
		x.mixed = true
		x.collectMixed(l.Rule, &l.view, l.fleet.Central(0))
	}
	w := l.way(x, 0, &l.machines.groups[0].options[option], l.machines.groups[0].price)
	l.formMixed(&l.view, c, &w)
	return c
}

// Three tasks bring more than one that takes as long, but one of a higher priority begins the batch.
func TestTheHighestPriorityBegins(t *testing.T) {
	l := newLab([]service{{slo: 100, stages: [][]model{{{1, 0, 10}}}}}, nil)
	l.wait(0, 100, 100, 100).add(fleet.Work{Items: 4, Pin: serving.None, Priority: 1}, 100)
	l.want(t, "one of a higher priority", "0: 1")
	if l.fleet.Central(0).Items() != 3 {
		t.Error("want the task of four items to begin")
	}
}

// Queries have 10 and 12 ms left: only the fast variant is in time, which loses 0.2 of accuracy. One between them in
// the queue has 100 ms left. It does not join them: left for the accurate variant, it is worth 0.2 more. With 11 ms
// left it has nothing to wait for, and joins.
func TestTasksThatBringMoreLaterDoNotJoin(t *testing.T) {
	for left, want := range map[float64][]int32{100: {0, 2}, 11: {0, 1, 2}} {
		l := newLab(ladder(), nil, nil)
		for _, w := range []struct{ left, due float64 }{{10, 10}, {11, left}, {12, 12}} {
			l.add(fleet.Work{Items: 1, Pin: serving.None, Priority: 1, Due: serving.Time(w.due * 1e6)}, w.left)
		}
		if c := l.formed(1, true); !slices.Equal(c.list, want) {
			t.Errorf("with %v ms left for the second query, those at %v are in the batch, want %v", left, c.list, want)
		}
	}
}

// What waits for a machine that loads may be late, and wants to begin: it counts as if it had all its time, and is
// worth nothing if it is left. So it brings its whole value, where another one that can wait brings next to nothing.
func TestTasksThatWaitForALoadBegin(t *testing.T) {
	for _, c := range []struct {
		cold        serving.Time
		left        float64
		least, most float64 // gain
	}{{2e9, -500, 1.2, 1.25}, {0, 90, 0, 0.01}} {
		l := newLab([]service{{slo: 100, stages: [][]model{{{1, 0, 10}}}}}, nil)
		l.at(1000).add(fleet.Work{Items: 1, Pin: serving.None, ColdUntil: c.cold}, c.left)
		if got := l.formed(0, true); got.n != 1 || got.gain < c.least || got.gain > c.most {
			t.Errorf("a batch of %d tasks gains %v, want 1 and %v to %v", got.n, got.gain, c.least, c.most)
		}
	}
}
