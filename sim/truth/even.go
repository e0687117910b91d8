package truth

import (
	"math"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
)

// Even is the content of queries of which nothing is known but fan-outs. It is right in the mean and has no chance in
// it: of every edge, the fraction of an item that one query leaves over is carried to the next query of its app. So of
// five queries that send 0.4 items each, the third and the fifth send one.
type Even struct {
	apps []evenApp // by AppID
}

// evenApp is the graph of an app and what its edges carry.
type evenApp struct {
	graph   *pipeline.Graph
	first   []int     // by position: the index of the stage's first edge in carried
	carried []float64 // by edge: items left over, in [0, 1)
}

// NewEven returns even content for the apps of spec, which must not change.
func NewEven(spec *serving.Spec) *Even {
	out := &Even{apps: make([]evenApp, len(spec.Apps))}
	for a := range spec.Apps {
		x := &out.apps[a]
		x.graph = pipeline.New(spec, serving.AppID(a))
		edges := 0
		for at := range x.graph.Len() {
			x.first = append(x.first, edges)
			edges += len(x.graph.Next(at))
		}
		x.carried = make([]float64, edges)
	}
	return out
}

// Fractional reports whether some edge sends a fraction of an item for each. Without such edges, even content says
// nothing that fan-outs do not.
func Fractional(spec *serving.Spec) bool {
	for s := range spec.Stages {
		for _, e := range spec.Stages[s].Next {
			if e.FanOut != math.Floor(e.FanOut) {
				return true
			}
		}
	}
	return false
}

// evenRounding forgives the rounding errors of sums of fractions: ten times 0.1 is an item.
const evenRounding = 1e-9

// Frame implements Content.
func (c *Even) Frame(q *serving.Query) Frame {
	if q.App < 0 || int(q.App) >= len(c.apps) {
		return evenFrame{}
	}
	x := &c.apps[q.App]
	return evenFrame{x, x.bring(q.Items)}
}

// Bring returns what the next query of an app, of so many items, brings to the app's stages, by position in App.Stages.
// It counts as a call of Frame.
func (c *Even) Bring(a serving.AppID, items int32) []float64 {
	return c.apps[a].bring(items).items
}

// brought is the items of one query.
type brought struct {
	items []float64 // by position
	sent  []float64 // by edge
}

func (x *evenApp) bring(items int32) brought {
	out := brought{make([]float64, x.graph.Len()), make([]float64, len(x.carried))}
	out.items[0] = float64(max(items, 1))
	for at := range out.items {
		for k, e := range x.graph.Next(at) {
			edge := x.first[at] + k
			all := x.carried[edge] + out.items[at]*e.FanOut
			whole := math.Floor(all + evenRounding)
			x.carried[edge], out.sent[edge] = max(all-whole, 0), whole
			if e.Collects {
				whole = min(whole, 1)
			}
			out.items[e.To] = max(out.items[e.To], whole)
		}
	}
	return out
}

type evenFrame struct {
	app *evenApp
	brought
}

// Fan implements Frame.
func (f evenFrame) Fan(s serving.StageID, k int) float64 {
	at := f.app.graph.Position(s)
	if f.items[at] == 0 {
		return 0
	}
	return f.sent[f.app.first[at]+k] / f.items[at]
}

// Balloon implements Frame.
func (evenFrame) Balloon(serving.StageID) float64 { return 1 }
