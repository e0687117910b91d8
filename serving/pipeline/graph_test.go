package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
)

// edge is from one position to another, with as many items as its fan-out says or, with rows, as a tensor has rows.
type edge struct {
	from, to int
	fanOut   float64
	rows     string
}

// one returns an edge that hands each item on as one.
func one(from, to int) edge { return edge{from: from, to: to, fanOut: 1} }

// specOf returns a spec with one app of n stages, named s0, s1 and so on, which have the given edges.
func specOf(n int, edges ...edge) *serving.Spec {
	spec := &serving.Spec{Apps: []serving.App{{Name: "app"}}, Stages: make([]serving.Stage, n)}
	for s := range n {
		spec.Apps[0].Stages = append(spec.Apps[0].Stages, serving.StageID(s))
		spec.Stages[s].Name = fmt.Sprint("s", s)
	}
	for _, e := range edges {
		from := &spec.Stages[e.from]
		from.Next = append(from.Next, serving.Edge{To: serving.StageID(e.to), FanOut: e.fanOut, Rows: e.rows})
		spec.Stages[e.to].Joins++
	}
	return spec
}

func graphOf(n int, edges ...edge) *pipeline.Graph { return pipeline.New(specOf(n, edges...), 0) }

// randomEdges returns the edges of a random graph of n stages, in which every stage but the first has one to three
// edges from different stages.
func randomEdges(rng *rand.Rand, n int) (edges []edge) {
	for to := 1; to < n; to++ {
		from := rng.Perm(to)
		for _, f := range from[:min(to, 1+rng.IntN(3))] {
			e := edge{from: f, to: to, fanOut: []float64{0, 0.5, 1, 1, 2.5}[rng.IntN(5)]}
			if rng.IntN(2) == 0 {
				e.rows = fmt.Sprint("r", rng.IntN(2))
			}
			edges = append(edges, e)
		}
	}
	return edges
}

// A stage of an app whose stages are mixed with those of another, and not numbered in topological order.
func TestGraph(t *testing.T) {
	spec := &serving.Spec{
		Apps: []serving.App{
			{Name: "a", Stages: []serving.StageID{4, 1, 5, 2}}, {Name: "b", Stages: []serving.StageID{3}},
		},
		Stages: []serving.Stage{
			{}, {Name: "left", Next: []serving.Edge{{To: 2, FanOut: 1}}}, {Name: "join", Joins: 2}, {Name: "other"},
			{Name: "first", Next: []serving.Edge{{To: 5, FanOut: 2.5, Rows: "boxes"}, {To: 1, FanOut: 1}}},
			{Name: "right", Next: []serving.Edge{{To: 2, FanOut: 2}}},
		},
	}
	g := pipeline.New(spec, 0)
	if g.Len() != 4 {
		t.Fatalf("%d stages", g.Len())
	}
	for at, want := range []struct {
		id                      serving.StageID
		name                    string
		final                   bool
		predecessors, ancestors []int
	}{
		{4, "first", false, nil, nil}, {1, "left", false, []int{0}, []int{0}}, {5, "right", false, []int{0}, []int{0}},
		{2, "join", true, []int{1, 2}, []int{0, 1, 2}},
	} {
		if g.Stage(at) != want.id || g.Name(at) != want.name || g.Position(want.id) != at || g.Final(at) != want.final {
			t.Errorf("position %d: stage %d %q, want %d %q", at, g.Stage(at), g.Name(at), want.id, want.name)
		}
		if !slices.Equal(g.Predecessors(at), want.predecessors) || !slices.Equal(g.Ancestors(at), want.ancestors) {
			t.Errorf("stage %q: predecessors %v and ancestors %v, want %v and %v", want.name, g.Predecessors(at),
				g.Ancestors(at), want.predecessors, want.ancestors)
		}
	}
	if e := g.Next(0); len(e) != 2 || e[0] != (pipeline.Edge{To: 2, FanOut: 2.5, Rows: "boxes"}) || e[1].To != 1 {
		t.Errorf("edges of the first stage: %+v", e)
	}
	if g := pipeline.New(spec, 1); g.Len() != 1 || g.Position(3) != 0 || !g.Final(0) {
		t.Errorf("app b: %+v", g)
	}
}

func TestEdge(t *testing.T) {
	half, boxes, each := pipeline.Edge{FanOut: 0.5}, pipeline.Edge{FanOut: 3, Rows: "boxes"}, pipeline.Edge{FanOut: 1}
	if half.Servable() || !boxes.Servable() || !each.Servable() {
		t.Error("servable are the edges with rows, and those with a fan-out of 1")
	}
	if half.Expected(1) != 1 || half.Expected(2) != 1 || half.Expected(0) != 0 || boxes.Expected(2) != 6 {
		t.Error("expected items are rounded half away from zero")
	}
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		next            [][]int
		sorted, sources []int
		stuck           []int
	}{
		{[][]int{{}}, []int{0}, []int{0}, nil},
		{[][]int{{}, {2}, {3, 4}, {0}, {0}}, []int{1, 2, 3, 4, 0}, []int{1}, nil},
		{[][]int{{1}, {}, {1}}, []int{0, 2, 1}, []int{0, 2}, nil},
		{[][]int{{1}, {2}, {1, 3}, {}}, []int{0}, []int{0}, []int{1, 2, 3}},
		{[][]int{{0}}, nil, nil, []int{0}},
	} {
		sorted, stuck := pipeline.Order(c.next)
		if !slices.Equal(sorted, c.sorted) || !slices.Equal(stuck, c.stuck) {
			t.Errorf("%v: order %v, stuck %v, want %v, %v", c.next, sorted, stuck, c.sorted, c.stuck)
		}
		if got := pipeline.Sources(c.next); !slices.Equal(got, c.sources) {
			t.Errorf("%v: sources %v, want %v", c.next, got, c.sources)
		}
	}
}

// Orders and ancestors of random graphs, with circles, against their definitions: a stage has no order when it is
// reached from a stage that reaches itself; the others stand behind all that reach them.
func TestOrderOfRandomGraphs(t *testing.T) {
	for seed := uint64(1); seed <= 500; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rng.IntN(8)
		next := make([][]int, n)
		for range rng.IntN(2 * n) {
			k := rng.IntN(n)
			next[k] = append(next[k], rng.IntN(n))
		}
		reaches := make([][]bool, n) // by number of edges: at least one
		for k := range n {
			reaches[k] = make([]bool, n)
			for _, to := range next[k] {
				reaches[k][to] = true
			}
		}
		for mid := range n {
			for from := range n {
				for to := range n {
					reaches[from][to] = reaches[from][to] || reaches[from][mid] && reaches[mid][to]
				}
			}
		}
		sorted, stuck := pipeline.Order(next)
		ancestors := pipeline.Ancestors(next)
		for k := range n {
			var before []int
			circle := reaches[k][k]
			for x := range n {
				if reaches[x][k] {
					before = append(before, x)
					circle = circle || reaches[x][x]
				}
			}
			if circle != slices.Contains(stuck, k) || circle == slices.Contains(sorted, k) {
				t.Fatalf("seed %d: %v: stage %d: order %v, stuck %v", seed, next, k, sorted, stuck)
			}
			if circle {
				continue
			}
			if !slices.Equal(ancestors[k], before) {
				t.Fatalf("seed %d: %v: ancestors of stage %d are %v, want %v", seed, next, k, ancestors[k], before)
			}
			for _, x := range before {
				if slices.Index(sorted, x) > slices.Index(sorted, k) {
					t.Fatalf("seed %d: %v: order %v, and stage %d feeds %d", seed, next, sorted, x, k)
				}
			}
		}
		if len(stuck) == 0 {
			for i := 1; i < n; i++ { // smaller numbers first, unless a stage has to wait
				if a, b := sorted[i-1], sorted[i]; a > b && !slices.Contains(next[a], b) {
					t.Fatalf("seed %d: %v: order %v has %d before %d without need", seed, next, sorted, a, b)
				}
			}
		}
	}
}
