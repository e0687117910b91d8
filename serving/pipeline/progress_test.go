package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/serving/pipeline"
)

// written shows changes as "ran 0, over 1, ready 2".
func written(changes []pipeline.Change) string {
	var out []string
	for _, c := range changes {
		out = append(out, fmt.Sprint([]string{"ran", "over", "ready"}[c.Kind], " ", c.Stage))
	}
	return strings.Join(out, ", ")
}

// portion is what is reported of a stage, and the changes that must follow.
type portion struct {
	at    int
	items int32
	sent  []int32
	want  string
}

func TestProgress(t *testing.T) {
	diamond := []edge{one(0, 1), one(0, 2), one(1, 3), one(2, 3)}
	for _, c := range []struct {
		name     string
		graph    *pipeline.Graph
		items    int32
		portions []portion
		itemsAt  []int32 // at the end
	}{
		{"one stage", graphOf(1), 2, []portion{{0, 2, nil, "ran 0"}}, []int32{2}},
		{
			"a chain whose stages take several portions", graphOf(2, edge{from: 0, to: 1, fanOut: 1, rows: "r"}), 3,
			[]portion{
				{0, 1, []int32{2}, ""}, {0, 2, []int32{3}, "ran 0, ready 1"}, {1, 4, nil, ""}, {1, 1, nil, "ran 1"},
			}, []int32{3, 5},
		},
		{
			"as many as expected, rounded by portion", graphOf(2, edge{from: 0, to: 1, fanOut: 0.5}), 3,
			[]portion{{0, 1, nil, ""}, {0, 2, nil, "ran 0, ready 1"}, {1, 2, nil, "ran 1"}}, []int32{3, 2},
		},
		{
			"a join waits for the last edge and takes the most", graphOf(4, diamond...), 1,
			[]portion{
				{0, 1, []int32{2, 1}, "ran 0, ready 1, ready 2"}, {2, 1, []int32{1}, "ran 2"},
				{1, 2, []int32{2}, "ran 1, ready 3"}, {3, 2, nil, "ran 3"},
			}, []int32{1, 2, 1, 2},
		},
		{
			"a branch passed over delivers nothing to the join", graphOf(4, diamond...), 1,
			[]portion{
				{0, 1, []int32{2, 0}, "ran 0, ready 1, over 2"}, {1, 2, []int32{2}, "ran 1, ready 3"},
				{3, 2, nil, "ran 3"},
			}, []int32{1, 2, 0, 2},
		},
		{
			"a join of branches that are all passed over is passed over", graphOf(4, diamond...), 1,
			[]portion{{0, 1, []int32{0, 0}, "ran 0, over 1, over 2, over 3"}}, []int32{1, 0, 0, 0},
		},
		{
			"a branch that finds nothing, after one that was passed over", graphOf(4, diamond...), 1,
			[]portion{{0, 1, []int32{0, 3}, "ran 0, over 1, ready 2"}, {2, 3, []int32{0}, "ran 2, over 3"}},
			[]int32{1, 0, 3, 0},
		},
		{
			"a chain passed over up to a join that an edge leads to past it",
			graphOf(5, one(0, 1), one(0, 4), one(1, 2), one(2, 3), one(3, 4)), 1,
			[]portion{{0, 1, []int32{0, 1}, "ran 0, over 1, over 2, over 3, ready 4"}, {4, 1, nil, "ran 4"}},
			[]int32{1, 0, 0, 0, 1},
		},
		{
			"a join in the middle of a chain that is passed over",
			graphOf(6, one(0, 1), one(0, 2), one(1, 3), one(2, 3), one(3, 4), one(4, 5)), 1,
			[]portion{
				{0, 1, []int32{0, 1}, "ran 0, over 1, ready 2"}, {2, 1, []int32{0}, "ran 2, over 3, over 4, over 5"},
			}, []int32{1, 0, 1, 0, 0, 0},
		},
		{
			"two edges between the same stages", graphOf(2, one(0, 1), edge{from: 0, to: 1, fanOut: 3}), 1,
			[]portion{{0, 1, nil, "ran 0, ready 1"}, {1, 3, nil, "ran 1"}}, []int32{1, 3},
		},
	} {
		var p pipeline.Progress
		p.Start(c.graph, c.items)
		for k, x := range c.portions {
			if p.Done() {
				t.Errorf("%s: done before portion %d", c.name, k)
			}
			if got := written(p.Served(x.at, x.items, x.sent, nil)); got != x.want {
				t.Errorf("%s: portion %d: %q, want %q", c.name, k, got, x.want)
			}
		}
		if !p.Done() {
			t.Errorf("%s: not done at the end", c.name)
		}
		for at, want := range c.itemsAt {
			if p.Items(at) != want || !p.Over(at) {
				t.Errorf("%s: stage %d worked on %d items, want %d", c.name, at, p.Items(at), want)
			}
		}
	}
}

// reference is a query's progress worked out from all portions that have been served, without counting on.
type reference struct {
	n        int
	edges    []edge
	items    int32
	whole    []bool // stages that are called for each query
	portions []portion
}

func (r *reference) ready(at int) bool {
	for _, e := range r.edges {
		if e.to == at && !r.over(e.from) {
			return false
		}
	}
	return true
}

func (r *reference) over(at int) bool {
	served := int32(0)
	for _, x := range r.portions {
		if x.at == at {
			served += x.items
		}
	}
	return r.ready(at) && served == r.itemsAt(at)
}

// itemsAt is for a stage that is ready.
func (r *reference) itemsAt(at int) (most int32) {
	if at == 0 {
		return r.items
	}
	for _, from := range r.edges {
		if from.to != at {
			continue
		}
		sent := r.sent(from)
		if r.whole[at] {
			sent = min(sent, 1)
		}
		most = max(most, sent)
	}
	return most
}

// sent is the items that all portions have sent along an edge.
func (r *reference) sent(e edge) (sum int32) {
	k := 0 // index of the edge at its stage
	for _, x := range r.edges {
		if x == e {
			break
		}
		if x.from == e.from {
			k++
		}
	}
	for _, x := range r.portions {
		if x.at == e.from {
			sum += x.sent[k]
		}
	}
	return sum
}

// Random graphs and random portions in any order: after each, stages are ready, over and passed over as the definition
// says, and the changes are those that were not so before. The same Progress counts one query after the other.
func TestProgressOfRandomGraphs(t *testing.T) {
	var p pipeline.Progress
	passedOver, joined, collected := 0, 0, 0
	for seed := uint64(1); seed <= 2000; seed++ {
		rng := rand.New(rand.NewPCG(seed, 2))
		r := reference{n: 1 + rng.IntN(8), items: 1 + rng.Int32N(4)}
		r.edges = randomEdges(rng, r.n)
		spec := specOf(r.n, r.edges...)
		for at := range r.n {
			r.whole = append(r.whole, rng.IntN(4) == 0)
			spec.Stages[at].EachQuery = r.whole[at]
		}
		g := pipeline.New(spec, 0)
		p.Start(g, r.items)
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d: %d stages %+v, portions %+v: %s", seed, r.n, r.edges, r.portions,
				fmt.Sprintf(format, args...))
		}
		left := map[int]int32{0: r.items} // items by stage that is ready and not over
		for len(left) > 0 {
			if p.Done() {
				fail("done, and %v are left", left)
			}
			open := make([]int, 0, len(left))
			for at := range r.n {
				if left[at] > 0 {
					open = append(open, at)
				}
			}
			x := portion{at: open[rng.IntN(len(open))]}
			x.items = 1 + rng.Int32N(left[x.at])
			for _, e := range g.Next(x.at) {
				n := e.Expected(x.items)
				if rng.IntN(3) > 0 {
					n = max(rng.Int32N(4)-1, 0)
				}
				x.sent = append(x.sent, n)
			}
			var ready, over []bool
			for at := range r.n {
				ready, over = append(ready, r.ready(at)), append(over, r.over(at))
			}
			r.portions = append(r.portions, x)
			changes := p.Served(x.at, x.items, x.sent, nil)
			if left[x.at] -= x.items; left[x.at] == 0 {
				delete(left, x.at)
			}
			for at := range r.n {
				var want []pipeline.Change
				switch {
				case r.over(at) && !over[at] && at == x.at:
					want = append(want, pipeline.Change{Stage: at, Kind: pipeline.Ran})
				case r.over(at) && !over[at]:
					want = append(want, pipeline.Change{Stage: at, Kind: pipeline.PassedOver})
					passedOver++
				case r.ready(at) && !ready[at]:
					want = append(want, pipeline.Change{Stage: at, Kind: pipeline.Ready})
					left[at] = r.itemsAt(at)
					if len(g.Predecessors(at)) > 1 {
						joined++
					}
					if at > 0 && r.whole[at] {
						collected++
					}
				}
				got := slices.DeleteFunc(slices.Clone(changes), func(c pipeline.Change) bool { return c.Stage != at })
				if !slices.Equal(got, want) {
					fail("stage %d: %q of %q, want %q", at, written(got), written(changes), written(want))
				}
				if p.Over(at) != r.over(at) {
					fail("stage %d is over: %v", at, p.Over(at))
				}
				if r.ready(at) && p.Items(at) != r.itemsAt(at) {
					fail("stage %d has %d items, want %d", at, p.Items(at), r.itemsAt(at))
				}
			}
			for k, c := range changes {
				if k == 0 != (c.Kind == pipeline.Ran) {
					fail("changes %q: the stage that ran must come first, and alone", written(changes))
				}
				cause := func(b pipeline.Change) bool {
					return b.Kind != pipeline.Ready && slices.Contains(g.Predecessors(c.Stage), b.Stage)
				}
				if k > 0 && !slices.ContainsFunc(changes[:k], cause) {
					fail("changes %q: stage %d comes before its cause", written(changes), c.Stage)
				}
			}
			for at := range r.n {
				k := 0
				for _, e := range r.edges {
					if e.from == at {
						if p.Sent(at, k) != r.sent(e) {
							fail("stage %d has sent %d along edge %d, want %d", at, p.Sent(at, k), k, r.sent(e))
						}
						k++
					}
				}
			}
		}
		if !p.Done() {
			fail("nothing is left, and it is not done")
		}
	}
	if passedOver < 1000 || joined < 1000 || collected < 500 {
		t.Errorf("%d stages passed over, %d joins, %d called for a query: too few to tell", passedOver, joined,
			collected)
	}
}

// A Progress that is started again allocates nothing.
func TestProgressDoesNotAllocate(t *testing.T) {
	g := graphOf(4, one(0, 1), one(0, 2), one(1, 3), one(2, 3))
	var p pipeline.Progress
	var changes []pipeline.Change
	serve := func() {
		p.Start(g, 1)
		for at := range 4 {
			changes = p.Served(at, 1, nil, changes[:0])
		}
	}
	serve()
	if n := testing.AllocsPerRun(100, serve); n != 0 || !p.Done() {
		t.Errorf("%v allocations for a query, want none", n)
	}
}
