package priced

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// lateLab is machines for an app that serves late queries: four take 10 ms together, as one does.
func lateLab(machines, busy int) *lab {
	app := service{slo: 100, late: true, stages: [][]model{{{1, 10, 0}}}}
	l := newLab([]service{app}, make([][]serving.VariantID, machines)...)
	for k := range busy {
		l.run(l.all[k], 0, 100)
	}
	return l
}

// Late queries take time that nobody needs: where half of the machines are free, or nothing runs. Otherwise they wait,
// but not for ever: 10 ms on one of four machines are their part, one in 64, of 160 ms.
func TestLateQueriesTakeSpareTime(t *testing.T) {
	for _, c := range []struct {
		machines, busy int
		since          time.Duration // that late queries took a machine
		want           []string
	}{
		{8, 4, 0, []string{"0: 2"}}, {8, 5, 0, nil}, {1, 0, 0, []string{"0: 2"}}, {2, 1, 0, nil},
		{4, 3, 159 * time.Millisecond, nil}, {4, 3, 160 * time.Millisecond, []string{"0: 2"}},
	} {
		l := lateLab(c.machines, c.busy).wait(0, -5, -4)
		l.build(&l.view)
		l.machines.groups[0].lateFrom = serving.Time(160*time.Millisecond - c.since)
		l.want(t, "late queries wait", c.want...)
	}
	l := lateLab(4, 3).wait(0, -5, -4)
	l.decide() // their part is due
	if got := l.machines.groups[0].lateFrom; got != serving.Time(160*time.Millisecond) {
		t.Errorf("late queries have their part again at %v, want after 160 ms", got)
	}
}

// A query with 15 ms left is in time on a machine that is free in 4 ms, and late on one that is in 10.
func TestAQueryIsLateWhereNoMachineIsInTime(t *testing.T) {
	for left, want := range map[float64]bool{15: true, 25: false, 9: true} {
		l := lateLab(1, 1).wait(0, left)
		l.build(&l.view)
		l.observe(&l.view)
		if got := l.hopeless(&l.view, &l.stages[0], l.fleet.Task(l.fleet.Central(0).Head())); got != want {
			t.Errorf("with %v ms left after a batch of 10, hopeless %v, want %v", left, got, want)
		}
	}
}

// Late queries join a batch that begins anyway while time is not scarce.
func TestLateQueriesJoinOthers(t *testing.T) {
	l := lateLab(1, 0).wait(0, -5, -4, 50)
	l.build(&l.view)
	l.machines.groups[0].lateFrom = serving.Never
	l.want(t, "time is not scarce", "0: 3")
	l = lateLab(1, 0).wait(0, -5, -4, 50)
	l.build(&l.view)
	l.updatePrices(&l.view)
	l.machines.groups[0].lateFrom, l.machines.groups[0].price = serving.Never, 10
	l.want(t, "time is scarce", "0: 1")
}
