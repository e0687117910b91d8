package dataplane

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/tensor"
)

// graph is an app of several stages, with what is known of their tensors.
type graph struct {
	*pipeline.Graph
	tensors *pipeline.Tensors
	stages  []graphStage      // by position
	changes []pipeline.Change // memory for execution.store, which the owner goroutine alone calls
}

type graphStage struct {
	wiring pipeline.Wiring
	takes  []pipeline.Take // nil when not known: all that is given to it
	counts bool            // an edge sends as many items as a tensor has rows
	wanted []string        // outputs, by the model's names, that later stages need; nil for all, and at final ones
	// lengths are, by edge, what the length of an item is at the stage that it leads to, by the query's names; nil
	// where none is known.
	lengths []*tensor.Length
}

// newGraph returns the graph of an app; nil for an app of one stage. It fails when the wiring is wrong.
func newGraph(spec *serving.Spec, wiring []pipeline.Wiring, a serving.AppID) (*graph, error) {
	if len(spec.Apps[a].Stages) == 1 {
		return nil, nil
	}
	g := &graph{Graph: pipeline.New(spec, a)}
	var err error
	if g.tensors, err = pipeline.Wire(g.Graph, wiring); err != nil {
		return nil, fmt.Errorf("dataplane: app %q: %w", spec.Apps[a].Name, err)
	}
	g.stages = make([]graphStage, g.Len())
	for at := range g.stages {
		x := &g.stages[at]
		if s := int(g.Stage(at)); s < len(wiring) {
			x.wiring = wiring[s]
		}
		x.takes = x.wiring.Taken()
		x.counts = slices.ContainsFunc(g.Next(at), func(e pipeline.Edge) bool { return e.Rows != "" })
	}
	for at := range g.stages {
		g.stages[at].wanted = g.neededLater(at)
		g.stages[at].lengths = g.lengthsBehind(at)
	}
	return g, nil
}

// lengthsBehind returns what the lengths of the stages are that the edges of one lead to.
func (g *graph) lengthsBehind(at int) (out []*tensor.Length) {
	edges := g.Next(at)
	for k := range edges {
		to := &g.stages[edges[k].To].wiring
		if l := to.Length; l != nil && to.Batch[l.Input] == pipeline.KeepBatch {
			if out == nil {
				out = make([]*tensor.Length, len(edges))
			}
			out[k] = &tensor.Length{Input: to.TakenAs(l.Input), Axes: l.Axes}
		}
	}
	return out
}

// neededLater returns the outputs of a stage, by its model's names, that a later stage may take or whose rows an edge
// sends on; nil for all. All are needed where not all is known, and where the stage answers.
func (g *graph) neededLater(at int) []string {
	specs := g.stages[at].wiring.Outputs
	if g.Final(at) || specs == nil {
		return nil
	}
	var named []string // in the query
	for _, e := range g.Next(at) {
		named = append(named, e.Rows)
	}
	for later := range g.stages {
		switch {
		case !slices.Contains(g.Ancestors(later), at):
		case g.stages[later].takes == nil:
			return nil
		default:
			for _, t := range g.stages[later].takes {
				named = append(named, t.Name)
			}
		}
	}
	return g.ownNames(at, named)
}

// ownNames returns those of a stage's known outputs, by its model's names, that are among names of the query. It
// returns nil, which stands for all, where none is: a model is run for something.
func (g *graph) ownNames(at int, named []string) (own []string) {
	w := &g.stages[at].wiring
	for _, s := range w.Outputs {
		if slices.Contains(named, w.GivenAs(s.Name)) {
			own = append(own, s.Name)
		}
	}
	return own
}

// wanted returns the outputs that a stage's model is run for, by its names, where a client has named those that it
// wants; nil for all.
func (g *graph) wanted(at int, outputs []string) []string {
	w := &g.stages[at].wiring
	gives := func(s tensor.Spec) bool { return slices.Contains(outputs, s.Name) }
	switch {
	case !g.Final(at) || outputs == nil:
		return g.stages[at].wanted
	case len(w.Gives) == 0 && slices.ContainsFunc(w.Outputs, gives):
		return outputs // those of other stages do not matter
	}
	return g.ownNames(at, outputs)
}

// newGraphs returns the graphs of some apps.
func newGraphs(spec *serving.Spec, wiring []pipeline.Wiring, of []serving.AppID) (map[serving.AppID]*graph, error) {
	out := make(map[serving.AppID]*graph, len(of))
	for _, a := range of {
		g, err := newGraph(spec, wiring, a)
		if err != nil {
			return nil, err
		}
		out[a] = g
	}
	return out, nil
}

// named returns the outputs of a stage by the query's names.
func (g *graph) named(at int, outputs []tensor.Tensor) []tensor.Tensor {
	w := &g.stages[at].wiring
	if len(w.Gives) == 0 {
		return outputs
	}
	outputs = slices.Clone(outputs)
	for k := range outputs {
		outputs[k].Name = w.GivenAs(outputs[k].Name)
	}
	return outputs
}

// itemsSent is how many items go along an edge of a stage for some items and their outputs, by the query's names; -1
// when the outputs do not tell.
func itemsSent(e *pipeline.Edge, items int, outputs []tensor.Tensor) int64 {
	if e.Rows == "" {
		return int64(items)
	}
	if i := find(outputs, e.Rows); i >= 0 && len(outputs[i].Shape) > 0 {
		return outputs[i].Shape[0]
	}
	return -1
}
