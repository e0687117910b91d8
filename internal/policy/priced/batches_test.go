package priced

import (
	"math"
	"testing"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
)

// firstOfTwo is a rule for a graph of two stages whose objective is 100 ms. Tasks wait at the first one, with so many
// ms left; a batch of n takes n ms there. A task with less than 60 ms left after it brings a tenth of its value.
func firstOfTwo(left ...float64) (*Rule, *stage) {
	spec := &serving.Spec{
		Apps:   []serving.App{{Name: "app", Stages: []serving.StageID{0, 1}}},
		Stages: []serving.Stage{{Name: "first", Next: []serving.Edge{{To: 1, FanOut: 1}}}, {Name: "second", Joins: 1}},
	}
	r := &Rule{apps: []app{{slo: 0.1, graph: pipeline.New(spec, 0)}}, stages: make([]stage, 2)}
	o := option{limit: 3, quality: 1, seconds: []float64{0, 0.001, 0.002, 0.003}}
	r.machines.groups = []group{{
		options: []option{o}, of: [][3]int32{{0, 1, 1}, {1, 1, 1}}, free: 1, price: 1, least: 1e-9,
	}}
	r.machines.paces = make([]pace, 1)
	x := &r.stages[0]
	x.groups, x.value, x.tasks, x.next = []int32{0}, 1, 1, []following{{stage: 1, share: 1, items: 1}}
	x.classes, x.until = []class{{upTo: math.MaxInt, most: 1, mean: 1}}, []float64{leastWait}
	x.tables = []table{{make([]float64, steps+1), make([]float64, steps+1)}}
	x.after = make([]float64, steps+1)
	for j := range x.after {
		if x.after[j] = 0.1; float64(j)/steps > 0.6 {
			x.after[j] = 1
		}
	}
	for _, ms := range left {
		end := serving.Time(ms * 1e6)
		x.waiting = append(x.waiting, place{end: end, due: end, part: 1})
	}
	for k := range x.lost {
		x.lost[k].reset(len(x.waiting))
	}
	return r, x
}

// At a stage that another one follows, the tasks that came last make the batch where those before them have too little
// time left for what follows. Where all have enough, the oldest go first.
func TestFreshTasksGoOn(t *testing.T) {
	for _, c := range []struct {
		left  []float64
		first int
	}{
		{[]float64{40, 41, 42, 90, 91, 92}, 3},
		{[]float64{80, 81, 82, 90, 91, 92}, 0},
	} {
		r, x := firstOfTwo(c.left...)
		best := &candidate{}
		w := r.way(x, 0, &r.machines.groups[0].options[0], 1)
		r.formPlain(0, best, &w)
		if best.first != c.first || best.n != 3 {
			t.Errorf("%v: a batch of %d from the task at %d on, want 3 from %d on", c.left, best.n, best.first, c.first)
		}
	}
}
