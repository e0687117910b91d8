package priced

import (
	"testing"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Of 64 queries 60 have one item and 4 have 15. The 60 are one class, although they are more than a twelfth of the
// work: no class parts tasks of the same size. The 4 are another one, whose large tasks need machines that are fast
// enough. One of them is taken to lie between 1 and 15, so they have (8 + 3*15) / 4 = 13.25 items on average.
func TestClassesPartTheWork(t *testing.T) {
	var x stage
	edges := make([]int32, pieces)
	for k := range edges {
		if edges[k] = 1; k >= 60 {
			edges[k] = 15
		}
	}
	x.classesOf(edges)
	if n := len(x.classes); n != 2 {
		t.Fatalf("%d classes, want 2: %+v", n, x.classes)
	}
	for c, want := range []class{{most: 1, mean: 1, share: 60. / 64}, {most: 15, mean: 13.25, share: 4. / 64}} {
		got := x.classes[c]
		near(t, "the mean size", got.mean, want.mean)
		near(t, "the share", got.share, want.share)
		if got.most != want.most {
			t.Errorf("class %d: up to %d items, want %d", c, got.most, want.most)
		}
	}
	if x.classOf(1) != 0 || x.classOf(100) != len(x.classes)-1 {
		t.Errorf("a task of 1 item is of class %d, one of 100 of class %d", x.classOf(1), x.classOf(100))
	}
}

// 100 queries a second come, three quarters of one item and a quarter of five: 2 items on average. So 200 items come,
// and 75 and 25 tasks of the classes.
func TestTasksOfAClass(t *testing.T) {
	x := stage{rate: 200, classes: []class{{mean: 1, share: 0.75}, {mean: 5, share: 0.25}}}
	near(t, "the mean size", x.meanSize(), 2)
	near(t, "the small tasks", x.tasksOf(0), 75)
	near(t, "the large tasks", x.tasksOf(1), 25)
}

// Two queries wait. Machines need 10 ms, and one of the queries has 5. It is given up where late queries are not served
// and no longer waits then. Where they are, it has the time that is left and no part in demand.
func TestLateQueriesAreNoDemand(t *testing.T) {
	for _, c := range []struct {
		late bool
		want float64
	}{{true, 1}, {false, 2}} {
		l := newLab([]service{{slo: 100, late: c.late, stages: [][]model{{{1, 0, 10}}}}}, nil).wait(0, 5, 50)
		l.build(&l.view)
		l.prices.outdated = true
		l.observe(&l.view)
		near(t, "the items that wait", l.stages[0].waits, c.want)
		near(t, "the tasks that wait", l.stages[0].classes[0].waits, c.want)
	}
}

// What waits counts as if it came within the objective, if that is more than what comes: 20 queries in 0.1 s are 200/s.
func TestFlow(t *testing.T) {
	a := app{slo: 0.1}
	near(t, "the flow of what waits", (&stage{rate: 50, waits: 20}).flow(&a), 200)
	near(t, "the flow of what comes", (&stage{rate: 500, waits: 20}).flow(&a), 500)
}

// Tasks of four items that wait count by their class and their items.
func TestWaitingTasksCountByTheirSize(t *testing.T) {
	l := newLab(ladder(), nil)
	for range 100 {
		l.seen.AddSize(0, 1)
		l.seen.AddSize(0, 4)
	}
	l.wait(0, 50).add(fleet.Work{Items: 4, Pin: serving.None}, 50).add(fleet.Work{Items: 4, Pin: serving.None}, 50)
	l.build(&l.view)
	l.observe(&l.view)
	x := &l.stages[0]
	near(t, "the items that wait", x.waits, 9)
	near(t, "the small tasks that wait", x.classes[x.classOf(1)].waits, 1)
	near(t, "the large tasks that wait", x.classes[x.classOf(4)].waits, 2)
}
