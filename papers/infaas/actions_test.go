package infaas

import (
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// ladder is an app whose variants 0, 1, 2 have accuracies 1, 0.9 and 0.8 and carry 10, 20 and 40 items/s.
var ladder = []offer{{1, []float64{100}}, {0.9, []float64{50}}, {0.8, []float64{25}}}

// Each case is one decision that can be followed by hand: demands are given as what capacity must reach (head-room 1),
// the slack is 5 %.
func TestActions(t *testing.T) {
	two := []([]offer){ladder, ladder} // variants 0 to 2 and 3 to 5
	for _, c := range []struct {
		name   string
		apps   [][]offer
		now    []int // variants by worker; nil is no snapshot
		rates  []float64
		weight []float64
		want   []int
	}{
		{
			"nothing runs: the most accurate variant that suffices, and no more workers than raise accuracy", two[:1],
			[]int{-1, -1}, []float64{9}, nil, []int{0, -1},
		},
		{"nothing runs: several, the slower being the more accurate", two[:1], nil, []float64{25}, nil, []int{0, 1}},
		{"enough: nothing changes", two[:1], []int{0, 0}, []float64{20}, nil, []int{0, 0}},
		{"an idle worker comes before a less accurate variant", two[:1], []int{0, -1}, []float64{15}, nil, []int{0, 0}},
		{"without one the variant that loses least and suffices", two[:1], []int{0}, []float64{15}, nil, []int{1}},
		{"skipping one that does not suffice", two[:1], []int{0}, []float64{25}, nil, []int{2}},
		{"one instance goes down, not all", two[:1], []int{0, 0, 0}, []float64{35}, nil, []int{0, 0, 1}},
		{
			"nothing closes the gap of 45 alone: down by the smallest steps until one does", two[:1], []int{0, 0, 0},
			[]float64{75}, nil, []int{1, 1, 2},
		},
		{
			"idle workers that do not suffice take what brings most, and are made more accurate then", two[:1],
			[]int{2, -1, -1}, []float64{110}, nil, []int{2, 2, 2},
		},
		{"a worker that another stage can spare", two, []int{0, 3, 3}, []float64{15, 9}, nil, []int{0, 3, 0}},
		{
			"a worker whose stage makes up for it by a faster variant", two, []int{2, 3, 3}, []float64{50, 15}, nil,
			[]int{2, 4, 0},
		},
		{"but not one whose stage would be short itself", two, []int{2, 5, 5}, []float64{50, 79}, nil, []int{2, 5, 5}},
		{
			"a stage without an instance gets one of who has several", two, []int{0, 0}, []float64{10, 9}, nil,
			[]int{0, 3},
		},
		{
			"what is left goes to the more important app", two, []int{2, 5, -1}, []float64{60, 60}, []float64{1, 2},
			[]int{2, 5, 4},
		},
		{
			"among equals to the one that has least of what it needs", two, []int{2, 5, -1}, []float64{60, 79}, nil,
			[]int{2, 5, 5},
		},
		{
			"preferably of who can spare it", [][]offer{ladder, ladder, ladder}, []int{0, 0, 0, 3, 3},
			[]float64{5, 20, 9}, nil, []int{0, 0, 6, 3, 3},
		},
		{"an upgrade needs slack: 10 is not 5 % above 9.6", two[:1], []int{1}, []float64{9.6}, nil, []int{1}},
		{"and is made with it", two[:1], []int{1}, []float64{9.5}, nil, []int{0}},
		{"an idle worker raises accuracy too", two[:1], []int{2, -1}, []float64{39}, nil, []int{2, 0}},
		{
			"what is loaded below 0.4 without an instance gives it up", two[:1], []int{0, 0, 0, 0}, []float64{8}, nil,
			[]int{0, 0, -1, -1},
		},
		{"but not at 0.45", two[:1], []int{0, 0, 0}, []float64{9}, nil, []int{0, 0, 0}},
	} {
		workers := make([]int, max(len(c.now), len(c.want)))
		spec, believed := cluster{workers: workers, apps: c.apps, weights: c.weight}.build()
		r := plan.Request{Spec: spec, Rates: c.rates}
		if c.now != nil {
			r.Snapshot = hosting(spec, c.now...)
		}
		got := must(t, &Planner{Profile: believed, Options: Options{Headroom: 1}}, r)
		if h := hosts(spec, got); !slices.Equal(h, c.want) {
			t.Errorf("%s: %v -> %v, want %v (variants by worker)", c.name, c.now, h, c.want)
		}
	}
}

// Which of two actions is preferred, for a stage that lacks 10/s: always the first of the pair.
func TestBetter(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b action
	}{
		{"closing the gap comes first", action{added: 10, lost: 0.5, rank: 3}, action{added: 9, lost: -1}},
		{"then the cost", action{added: 10, lost: 0.1, rank: 3}, action{added: 10, lost: 0.2}},
		{"also below nothing", action{added: 10, lost: -0.2, rank: 3}, action{added: 10, lost: -0.1}},
		{"then what disturbs less", action{added: 10, lost: 0.1}, action{added: 10, lost: 0.1, rank: 1}},
		{"what does not close it: the cost", action{added: 2, lost: 0.1, rank: 3}, action{added: 9, lost: 0.2}},
		{"what costs nothing by what it brings", action{added: 9, lost: 0, rank: 3}, action{added: 2, lost: -0.3}},
		{"then what disturbs less", action{added: 9, lost: 0}, action{added: 9, lost: -0.3, rank: 2}},
	} {
		if !c.a.better(&c.b, 10) || c.b.better(&c.a, 10) {
			t.Errorf("%s: %+v against %+v", c.name, c.a, c.b)
		}
	}
}

// Three workers carry 10/s each of the 25/s needed. One is given up: it suffices that another changes to 20/s; a change
// to 40/s costs more accuracy than needed.
func TestRelief(t *testing.T) {
	spec, believed := cluster{workers: []int{0, 0, 0}, apps: [][]offer{ladder}}.build()
	p := &Planner{Profile: believed, Options: Options{Headroom: 1}}
	x, err := p.read(plan.Request{Spec: spec, Rates: []float64{25}, Snapshot: hosting(spec, 0, 0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if a, ok := x.swapToFree(0, 0); !ok || x.options[a.slower].variant != 0 || x.options[a.faster].variant != 1 {
		t.Errorf("%+v %v, want variant 0 to become 1", a, ok)
	}
	x.stages[0].need = 51
	if a, ok := x.swapToFree(0, 0); ok {
		t.Errorf("%+v relieves a stage that needs 51/s: 10 and 40 are left", a)
	}
}

// Of two stages with several workers, the one that keeps four times its need gives a worker, not the one that keeps
// half.
func TestSpare(t *testing.T) {
	spec, believed := cluster{workers: []int{0, 0, 0, 0, 0}, apps: [][]offer{ladder, ladder, ladder}}.build()
	for _, rates := range [][]float64{{5, 20, 9}, {40, 1, 9}} {
		p := &Planner{Profile: believed, Options: Options{Headroom: 1}}
		x, err := p.read(plan.Request{Spec: spec, Rates: rates, Snapshot: hosting(spec, 0, 0, 0, 3, 3)})
		if err != nil {
			t.Fatal(err)
		}
		want := serving.StageID(0)
		if rates[1] < rates[0] {
			want = 1
		}
		if from, to := x.spareWorker(2); from == idle || x.options[from].stage != want || x.options[to].variant != 6 {
			t.Errorf("rates %v: options %d to %d, want a worker of stage %d for variant 6", rates, from, to, want)
		}
	}
}

// An app of two stages for which there is only one worker gets none, however important: the other app can use it.
func TestHalfAnAppIsNone(t *testing.T) {
	spec, believed := cluster{
		workers: []int{0}, apps: [][]offer{ladder, ladder, ladder}, weights: []float64{5, 1, 1},
	}.build()
	spec.Apps = []serving.App{spec.Apps[0], spec.Apps[2]}
	spec.Apps[0].Stages, spec.Apps[0].SLO.Latency = []serving.StageID{0, 1}, 2*spec.Apps[0].SLO.Latency
	spec.Stages[0].Next = []serving.Edge{{To: 1, FanOut: 1}}
	spec.Stages[1].App, spec.Stages[1].Joins, spec.Stages[2].App = 0, 1, 1
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	got := must(t, &Planner{Profile: believed}, plan.Request{Spec: spec, Rates: []float64{5, 5}})
	if h := hosts(spec, got); !slices.Equal(h, []int{6}) {
		t.Errorf("%v, want variant 6 of the app of one stage", h)
	}
}
