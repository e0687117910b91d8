package infaas

import (
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/policy/plan"
)

// ladder is an app whose variants 0, 1, 2 have accuracies 1, 0.9 and 0.8 and carry 10, 20 and 40 items/s.
var ladder = []offer{{1, []float64{100}}, {0.9, []float64{50}}, {0.8, []float64{25}}}

// Each case is one decision that can be followed by hand: demands are given as what capacity must reach (head-room 1), the
// slack is 5 %.
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
		{"nothing runs: the most accurate variant that suffices, and no more workers than raise accuracy", two[:1], []int{-1, -1}, []float64{9}, nil, []int{0, -1}},
		{"nothing runs: several, the slower being the more accurate", two[:1], nil, []float64{25}, nil, []int{0, 1}},
		{"enough: nothing changes", two[:1], []int{0, 0}, []float64{20}, nil, []int{0, 0}},
		{"an idle worker comes before a less accurate variant", two[:1], []int{0, -1}, []float64{15}, nil, []int{0, 0}},
		{"without one the variant that loses least and suffices", two[:1], []int{0}, []float64{15}, nil, []int{1}},
		{"skipping one that does not suffice", two[:1], []int{0}, []float64{25}, nil, []int{2}},
		{"one instance goes down, not all", two[:1], []int{0, 0, 0}, []float64{35}, nil, []int{0, 0, 1}},
		{"nothing closes the gap of 45 alone: down by the smallest steps until one does", two[:1], []int{0, 0, 0}, []float64{75}, nil, []int{1, 1, 2}},
		{"idle workers that do not suffice take what brings most, and are made more accurate then", two[:1], []int{2, -1, -1}, []float64{110}, nil, []int{2, 2, 2}},
		{"a worker that another stage can spare", two, []int{0, 3, 3}, []float64{15, 9}, nil, []int{0, 3, 0}},
		{"a worker whose stage makes up for it by a faster variant", two, []int{2, 3, 3}, []float64{50, 15}, nil, []int{2, 4, 0}},
		{"but not one whose stage would be short itself", two, []int{2, 5, 5}, []float64{50, 79}, nil, []int{2, 5, 5}},
		{"a stage without an instance gets one of who has several", two, []int{0, 0}, []float64{10, 9}, nil, []int{0, 3}},
		{"what is left goes to the more important app", two, []int{2, 5, -1}, []float64{60, 60}, []float64{1, 2}, []int{2, 5, 4}},
		{"an upgrade needs slack: 10 is not 5 % above 9.6", two[:1], []int{1}, []float64{9.6}, nil, []int{1}},
		{"and is made with it", two[:1], []int{1}, []float64{9.5}, nil, []int{0}},
		{"an idle worker raises accuracy too", two[:1], []int{2, -1}, []float64{39}, nil, []int{2, 0}},
		{"what is loaded below 0.4 without an instance gives it up", two[:1], []int{0, 0, 0, 0}, []float64{8}, nil, []int{0, 0, -1, -1}},
		{"but not at 0.45", two[:1], []int{0, 0, 0}, []float64{9}, nil, []int{0, 0, 0}},
	} {
		workers := make([]int, max(len(c.now), len(c.want)))
		spec, believed := world{workers: workers, apps: c.apps, weights: c.weight}.build()
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
