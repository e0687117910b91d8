package pipeline

import (
	"math"

	"github.com/sluice-serving/sluice/serving"
)

// Request stands for the request where the position of a stage is expected: it gives the tensors that clients send.
const Request = -1

// Graph is the stages of one app and the edges between them. A stage is named by its position in App.Stages, which is a
// topological order; position 0 is the only source. A graph does not change.
type Graph struct {
	stages    []stage
	edges     int             // of all stages
	lowest    serving.StageID // of the app
	following [][]int         // by position: those of the stages that a stage feeds
	positions []int32         // by StageID, counted from lowest; -1 for stages of other apps
}

type stage struct {
	id           serving.StageID
	name         string
	next         []Edge
	firstEdge    int // number of next[0] among all edges of the graph
	predecessors []int
	ancestors    []int
	origins      []origin
}

// Edge leads to a stage that another one feeds.
type Edge struct {
	To     int     // position
	FanOut float64 // expected items sent per item served
	// Rows names the tensor of the query whose rows become the items of the next stage. If it is empty, each item is
	// handed on as one.
	Rows string
	// Collects says that all that a query is sent along the edge is one item of the next stage (Stage.EachQuery).
	Collects bool
}

// delivered is how many items of the next stage are made of those that a query is sent along the edge.
func delivered[T int32 | float64](e *Edge, sent T) T {
	if e.Collects {
		return min(sent, 1)
	}
	return sent
}

// Delivers is the items that are expected at the next stage for so many served at the one before it.
func (e *Edge) Delivers(items float64) float64 { return delivered(e, items*e.FanOut) }

// Expected returns how many items go along the edge for some items of its stage where nobody counts them.
func (e *Edge) Expected(items int32) int32 { return int32(math.Round(float64(items) * e.FanOut)) }

// Servable tells whether a live run can count the items that go along the edge: one for each, or the rows of a tensor.
func (e *Edge) Servable() bool { return e.Rows != "" || e.FanOut == 1 }

// New returns the graph of an app. The spec must be valid. It is not kept.
func New(spec *serving.Spec, a serving.AppID) *Graph {
	ids := spec.Apps[a].Stages
	g := &Graph{stages: make([]stage, len(ids)), lowest: ids[0]}
	highest := ids[0]
	for _, s := range ids {
		g.lowest, highest = min(g.lowest, s), max(highest, s)
	}
	g.positions = make([]int32, highest-g.lowest+1)
	for k := range g.positions {
		g.positions[k] = -1
	}
	for at, s := range ids {
		g.positions[s-g.lowest] = int32(at)
	}
	g.following = make([][]int, len(ids))
	for at, s := range ids {
		x := &g.stages[at]
		x.id, x.name, x.firstEdge = s, spec.Stages[s].Name, g.edges
		for _, e := range spec.Stages[s].Next {
			to := g.Position(e.To)
			x.next = append(x.next, Edge{
				To: to, FanOut: e.FanOut, Rows: e.Rows, Collects: spec.Stages[e.To].EachQuery,
			})
			g.following[at] = append(g.following[at], to)
			g.stages[to].predecessors = append(g.stages[to].predecessors, at)
		}
		g.edges += len(x.next)
	}
	for at, before := range Ancestors(g.following) {
		g.stages[at].ancestors = before
	}
	g.findOrigins()
	return g
}

// Len returns the number of stages.
func (g *Graph) Len() int { return len(g.stages) }

// Stage returns the identifier of the stage at a position.
func (g *Graph) Stage(at int) serving.StageID { return g.stages[at].id }

// Name returns the name of the stage at a position.
func (g *Graph) Name(at int) string { return g.stages[at].name }

// Position returns the position of a stage of the app.
func (g *Graph) Position(s serving.StageID) int { return int(g.positions[s-g.lowest]) }

// Next returns the edges to the stages that a stage feeds, in the order of Stage.Next. The slice must not be changed.
func (g *Graph) Next(at int) []Edge { return g.stages[at].next }

// Following returns by position those of the stages that each stage feeds. They must not be changed.
func (g *Graph) Following() [][]int { return g.following }

// Final tells whether a stage feeds no other: the query is answered with its outputs.
func (g *Graph) Final(at int) bool { return len(g.stages[at].next) == 0 }

// Predecessors returns the positions of the stages that feed a stage, ascending, one for each edge that leads to it. A
// stage with several is a join. The slice must not be changed.
func (g *Graph) Predecessors(at int) []int { return g.stages[at].predecessors }

// Ancestors returns the positions of the stages from which a way leads to a stage, ascending. The slice must not be
// changed.
func (g *Graph) Ancestors(at int) []int { return g.stages[at].ancestors }
