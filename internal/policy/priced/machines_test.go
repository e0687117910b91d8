package priced

import (
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Machines are alike that hold the same: of four, two hold both variants of a stage and one holds each. A batch that
// begins takes a slot, and its machine counts as free from when the batch is believed to end.
func TestMachinesAreGroupedByWhatTheyHold(t *testing.T) {
	l := newLab(ladder(), nil, []serving.VariantID{0}, nil, []serving.VariantID{1})
	l.build(&l.view)
	f := &l.machines
	var sizes []int
	for g := range f.groups {
		sizes = append(sizes, f.groups[g].free)
	}
	if !slices.Equal(sizes, []int{2, 1, 1}) || f.free != 4 || f.slots != 4 {
		t.Fatalf("free slots %v of groups, %d of %d in all; want [2 1 1], 4 of 4", sizes, f.free, f.slots)
	}
	m := f.take(0, 0, 0, 0.02)
	if m == nil || f.groups[0].free != 1 || f.free != 3 {
		t.Errorf("a batch has begun: free %d of the group, %d in all", f.groups[0].free, f.free)
	}
	if _, end, ok := f.groups[0].ends.Min(); !ok || end != int64(20*time.Millisecond) {
		t.Errorf("the machine is free at %v, want after 20 ms", time.Duration(end))
	}
	if f.take(1, 0, 0, 0.02); f.freeFor(&l.stages[0]) != true || f.groups[1].free != 0 {
		t.Error("two machines are free still")
	}
}

// An instance runs a batch of 20 ms. Once it has ended its slot is free, and how long it took counts in the pace of its
// machine's type; but for one that ran beside another, which took longer for that reason.
func TestBatchesThatEndFreeMachines(t *testing.T) {
	l := newLab(ladder(), nil)
	i := l.all[0]
	l.run(i, 0, 100)
	l.build(&l.view)
	f := &l.machines
	if f.free != 0 {
		t.Fatalf("%d slots are free while a batch runs", f.free)
	}
	for _, overlaps := range []bool{true, false} {
		l.at(30)
		l.fleet.Finish(i, 1, l.view.Now)
		l.view.Finish(route.Ended{Instance: i.ID(), Took: 30e6, Believed: 20e6, Overlaps: overlaps})
		f.follow(&l.view)
		l.view.ForgetFinished()
		if want := map[bool]float64{true: 0, false: 0.03}[overlaps]; f.free != 1 || f.paces[0].taken != want {
			t.Errorf("the batch has ended: %d free, %v s taken, want 1 and %v", f.free, f.paces[0].taken, want)
		}
	}
}

// Prices settle over some updates. Where machines hold something new, their group begins with the price of the one that
// held the same, and one that is new with that of some group of its type.
func TestNewGroupsBeginWithPrices(t *testing.T) {
	l := newLab(ladder(), nil, []serving.VariantID{0})
	l.build(&l.view)
	l.machines.groups[0].dual, l.machines.groups[1].dual = 3, 5
	l.fleet.UnwantAll(l.all[0])
	l.fleet.Want(l.all[0], 1)
	l.build(&l.view)
	for g := range l.machines.groups {
		y := &l.machines.groups[g]
		if n := len(y.options); n != 1 {
			t.Fatalf("group %d has %d options", g, n)
		}
		if want := map[serving.VariantID]float64{0: 5, 1: 3}[y.options[0].variant]; y.dual != want {
			t.Errorf("the group that holds variant %d begins with %v, want %v", y.options[0].variant, y.dual, want)
		}
	}
}

// A variant below its app's floor is there for queries that are pinned to it. At 800 queries/s it would serve all of
// them, if it might. It serves the one that is pinned.
func TestVariantsBelowTheFloorServePinnedQueries(t *testing.T) {
	app := ladder()
	app[0].floor = 0.9
	l := newLab(app, nil)
	l.build(&l.view)
	y, x := &l.machines.groups[0], &l.stages[0]
	if n, all := len(y.serving(x)), len(y.holding(x)); n != 1 || all != 2 || y.serving(x)[0].variant != 0 {
		t.Errorf("%d of %d options serve queries that are not pinned, want 1 of 2", n, all)
	}
	l.at(1000).come(0, 800).wait(0, 50, 50, 50, 50).want(t, "queries that are not pinned", "0: 4")
	l = newLab(app, nil).at(1000).come(0, 800).add(fleet.Work{Items: 1, Pin: 1}, 50)
	l.want(t, "a query that is pinned", "1: 1")
}
