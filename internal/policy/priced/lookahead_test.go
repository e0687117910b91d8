package priced

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
)

// twoGroups is a rule for one stage that two groups of machines serve: on those of the second a task takes twice as
// long. ends are by when the busy slots of each are free, in ns.
func twoGroups(price [2]float64, free [2]int, ends [2][]int64) (*Rule, *stage) {
	spec := &serving.Spec{
		Apps:   []serving.App{{Name: "app", Stages: []serving.StageID{0}}},
		Stages: []serving.Stage{{Name: "stage"}},
	}
	r := &Rule{apps: []app{{graph: pipeline.New(spec, 0)}}, stages: make([]stage, 1)}
	r.machines.groups = make([]group, 2)
	for g := range r.machines.groups {
		y := &r.machines.groups[g]
		o := option{limit: 10, quality: 1, seconds: make([]float64, 11)}
		for n := range o.seconds {
			o.seconds[n] = 0.001 * float64(n) * float64(g+1)
		}
		y.options, y.of = []option{o}, [][3]int32{{0, 1, 1}}
		y.free, y.dual, y.price, y.least = free[g], price[g], price[g], 1e-9
		y.machines, y.slots = make([]int32, 2+4*g), 1 // the fast ones are few
		for k, end := range ends[g] {
			y.ends.Set(k, end)
		}
	}
	x := &r.stages[0]
	x.groups, x.classes = []int32{0, 1}, []class{{most: 10}}
	x.slots = 8
	x.measure(r)
	return r, x
}

// The fast machine is free, and a slow one a moment later. The small task waits for the slow one; the large one, which
// is in time on the fast one only, begins there.
func TestFastMachinesAreKept(t *testing.T) {
	r, x := twoGroups([2]float64{3, 1}, [2]int{1, 0}, [2][]int64{nil, {1e5, 9e6}})
	x.differing = []task{{items: 1, left: 0.005}, {items: 4, left: 0.005}}
	r.lookAhead(&route.View{}, x)
	small, large := &x.differing[0], &x.differing[1]
	if small.group != 1 || small.begins || small.mayBegin(0) || small.mayBegin(1) || !small.mayJoin(1) {
		t.Errorf("the small task is for group %d, begins %v; want it to wait for group 1", small.group, small.begins)
	}
	if !large.mayBegin(0) || large.mayBegin(1) {
		t.Errorf("the large task is for group %d, begins %v; want it to begin on group 0", large.group, large.begins)
	}
	// Without the large one it waits as well: 2 ms at 1 a second and half of 0.1 cost less than 1 ms at 3.
	r, x = twoGroups([2]float64{3, 1}, [2]int{1, 0}, [2][]int64{nil, {1e5, 9e6}})
	x.differing = []task{{items: 1, left: 0.005}}
	if r.lookAhead(&route.View{}, x); x.differing[0].group != 1 {
		t.Errorf("the small task is for group %d alone, want 1", x.differing[0].group)
	}
	// Without scarce time nothing waits.
	r, x = twoGroups([2]float64{0, 0}, [2]int{1, 0}, [2][]int64{nil, {1e5, 9e6}})
	x.differing = []task{{items: 1, left: 0.005}}
	if r.lookAhead(&route.View{}, x); !x.differing[0].mayBegin(0) {
		t.Error("a lone task waits although time costs nothing")
	}
}

// No slot has more to do than its tasks have time for, and a task without a slot may go anywhere.
func TestSlotsAreGivenOnce(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 1))
	given := 0
	for k := range 2000 {
		var free [2]int
		var ends [2][]int64
		for g := range free {
			free[g] = rng.IntN(3)
			for range rng.IntN(4) {
				ends[g] = append(ends[g], 1+rng.Int64N(1e7))
			}
		}
		r, x := twoGroups([2]float64{rng.Float64(), rng.Float64()}, free, ends)
		for range rng.IntN(12) {
			x.differing = append(x.differing, task{items: 1 + rng.IntN(10), left: 0.02 * rng.Float64()})
		}
		r.lookAhead(&route.View{}, x)
		begin, work, latest := [2]int{}, [2]float64{}, [2]float64{}
		for j := range x.differing {
			y := &x.differing[j]
			if y.group == anywhere {
				continue
			}
			given++
			took := r.machines.groups[y.group].fastest(x, y.items)
			if took > y.left {
				t.Errorf("seed %d, draw %d: a task of %v s with %v left", seed, k, took, y.left)
			}
			if y.begins {
				begin[y.group]++
			}
			work[y.group] += took
			latest[y.group] = math.Max(latest[y.group], y.left)
		}
		for g := range free {
			if begin[g] > free[g] {
				t.Errorf("seed %d, draw %d: %d tasks begin on %d free slots", seed, k, begin[g], free[g])
			}
			room := float64(free[g]) * latest[g]
			for _, end := range ends[g] {
				room += math.Max(latest[g]-float64(end)/1e9, 0)
			}
			if work[g] > room+1e-9 {
				t.Errorf("seed %d, draw %d: %v s of work in %v s", seed, k, work[g], room)
			}
		}
	}
	if given < 1000 {
		t.Errorf("seed %d: only %d tasks were given a slot", seed, given)
	}
}
