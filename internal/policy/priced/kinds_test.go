package priced

import (
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// threeGroups is a rule for two stages. Groups 0 and 2 hold variant 0 of the first one, and group 2 one of the second
// stage besides. Group 1 holds variant 1 of the first. A slot of each is free.
func threeGroups(prices ...float64) (*Rule, *stage) {
	r := &Rule{stages: []stage{{id: 0}, {id: 1}}}
	f := &r.machines
	f.groups, f.freeOf, f.freeSet = make([]group, 3), make([]int32, 2), make([]uint64, 1)
	for g := range f.groups {
		y := &f.groups[g]
		y.price, y.slots, y.stages = prices[g], 1, []serving.StageID{0}
		y.options = []option{{variant: serving.VariantID(g % 2), limit: 4}}
		y.of = [][3]int32{{0, 1, 1}, {1, 1, 1}}
		if g == 2 {
			y.stages = append(y.stages, 1)
			y.options = append(y.options, option{stage: 1, variant: 2, limit: 4})
			y.of[1] = [3]int32{1, 2, 2}
		}
		f.addFree(int32(g), 1)
	}
	x := &r.stages[0]
	x.groups, x.candidates, x.collection = []int32{0, 1, 2}, make([]candidate, 3), 1
	x.findKinds(f.groups)
	return r, x
}

// A batch of one task that is worth 1 and takes 0.1 s gains 1 - 0.1*3 = 0.7 in group 0, and 1 - 0.1*2 = 0.8 in group 2,
// where it is the same batch. Group 0 need not be looked at. Group 1 has another variant: what a batch gains there is
// not known before it is formed.
func TestBatchesAreFormedOnTheCheapestOfAKind(t *testing.T) {
	r, x := threeGroups(3, 9, 2)
	want := func(why string, groups ...int32) {
		t.Helper()
		if got := r.promising(x); !slices.Equal(got, groups) {
			t.Errorf("%s: batches are formed for groups %v; want %v", why, got, groups)
		}
	}
	want("group 2 is cheaper than group 0", 1, 2)
	// A second free slot halves the price of the time: 3 * 0.5 = 1.5 is less than 2.
	r.machines.addFree(0, 1)
	want("group 0 has two free slots", 0, 1)
	r.machines.addFree(0, -2)
	want("group 0 has none", 1, 2)

	r, x = threeGroups(2, 9, 2)
	want("of two that cost the same the first counts", 0, 1)
	x.candidates[0].passed = x.collection
	want("no machine of group 0 could begin its batch", 1, 2)
	x.collection++
	want("the tasks were collected anew", 0, 1)
	r.machines.groups[2].blocked = []blocked{{stage: 1, rate: 1}}
	want("a batch of group 2 blocks others, which one of group 0 does not", 0, 1, 2)
	r.machines.groups[2].blocked = nil
	x.placed = true
	want("tasks were given their slots", 0, 1, 2)
}

// Group 2 alone serves the second stage.
func TestFreeSlotsAreCountedByStage(t *testing.T) {
	r, _ := threeGroups(1, 1, 1)
	first, second := &r.stages[0], &r.stages[1]
	for _, c := range []struct {
		taken         int32
		first, second bool
		free          int
	}{{2, true, false, 2}, {0, true, false, 1}, {1, false, false, 0}} {
		r.machines.addFree(c.taken, -1)
		if f := &r.machines; f.freeFor(first) != c.first || f.freeFor(second) != c.second || f.free != c.free {
			t.Errorf("with group %d taken: free for the stages %v and %v, %d in all; want %v, %v and %d",
				c.taken, f.freeFor(first), f.freeFor(second), f.free, c.first, c.second, c.free)
		}
	}
}
