package pipeline

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Tensors is the name space of a query: the tensors of the request, and those that the stages of a graph give, by the
// names that they have in the query. A stage sees those of the request and of its ancestors. Of one name it sees the
// tensor of the latest ancestor, by position; stages in other branches do not count, so that it does not matter which
// branch is faster.
type Tensors struct {
	graph   *Graph
	request []tensor.Spec
	outputs []outputs // by position
}

// outputs is what is known of the tensors that a stage gives.
type outputs struct {
	specs []tensor.Spec
	all   bool // it gives no others
}

// NewTensors returns a name space in which nothing is known yet: the request brings nothing, and each stage may give
// anything.
func NewTensors(g *Graph) *Tensors { return &Tensors{graph: g, outputs: make([]outputs, g.Len())} }

// Wire returns the name space of a graph as far as the wiring of its stages tells, with an empty request. wiring is by
// StageID; of stages beyond its end nothing is known. It fails when the wiring names tensors that a stage does not
// have, and when a live run cannot count the items that go along an edge (Edge.Servable).
func Wire(g *Graph, wiring []Wiring) (*Tensors, error) {
	t := NewTensors(g)
	for at := range g.Len() {
		if err := t.wire(at, wiringOf(wiring, g.Stage(at))); err != nil {
			return nil, fmt.Errorf("stage %q: %w", g.Name(at), err)
		}
		for _, e := range g.Next(at) {
			switch o := &t.outputs[at]; {
			case !e.Servable():
				return nil, fmt.Errorf("stage %q sends %v items to %q for each it gets: a live stage sends one, or as "+
					"many as a tensor has rows: name the tensor as rows", g.Name(at), e.FanOut, g.Name(e.To))
			case e.Rows != "" && o.all && !t.Gives(at, e.Rows):
				return nil, fmt.Errorf("stage %q sends the rows of %q to %q, but gives %v", g.Name(at), e.Rows,
					g.Name(e.To), Names(o.specs))
			}
		}
	}
	return t, nil
}

// wire adds what one stage is known to give.
func (t *Tensors) wire(at int, w *Wiring) error {
	if err := w.check(); err != nil {
		return err
	}
	for _, s := range w.Outputs {
		s.Name = w.GivenAs(s.Name)
		if !t.Give(at, s) {
			return fmt.Errorf("two of its outputs are called %q", s.Name)
		}
	}
	if w.Outputs != nil {
		t.GivesNoMore(at)
	}
	return nil
}

// wiringOf returns the wiring of a stage, the default beyond the end.
func wiringOf(wiring []Wiring, s serving.StageID) *Wiring {
	if int(s) >= len(wiring) {
		return &Wiring{}
	}
	return &wiring[s]
}

// Give adds a tensor that a stage gives, by its name in the query. It adds nothing and returns false when the stage
// gives one of that name already.
func (t *Tensors) Give(at int, s tensor.Spec) bool {
	o := &t.outputs[at]
	if Find(o.specs, s.Name) != nil {
		return false
	}
	o.specs = append(o.specs, s)
	return true
}

// GivesNoMore notes that all that a stage gives is known.
func (t *Tensors) GivesNoMore(at int) { t.outputs[at].all = true }

// Bring adds a tensor that the request brings.
func (t *Tensors) Bring(s tensor.Spec) { t.request = append(t.request, s) }

// Of returns the tensors that a stage is known to give, or the request to bring, in the order in which they were added.
// all is false where a stage may give others. The slice must not be changed.
func (t *Tensors) Of(from int) (specs []tensor.Spec, all bool) {
	if from == Request {
		return t.request, true
	}
	return t.outputs[from].specs, t.outputs[from].all
}

// Gives tells whether a stage is known to give a tensor, or the request to bring it.
func (t *Tensors) Gives(from int, name string) bool {
	specs, _ := t.Of(from)
	return Find(specs, name) != nil
}

// Source returns from where a stage takes a name: the position of the latest ancestor that gives it, or Request. It is
// not certain where a later ancestor may give it, of which not all is known; then from is that ancestor.
func (t *Tensors) Source(at int, name string) (from int, certain bool) {
	from = t.graph.Latest(at, func(x int) bool { return !t.outputs[x].all || t.Gives(x, name) })
	return from, from == Request || t.Gives(from, name)
}

// Latest returns the latest ancestor of a stage, by position, that gives a tensor; Request where none does.
func (g *Graph) Latest(at int, gives func(ancestor int) bool) int {
	for _, x := range slices.Backward(g.stages[at].ancestors) {
		if gives(x) {
			return x
		}
	}
	return Request
}

// Visible lists the names that a stage is known to see: the request's, then those of its ancestors by position, each
// once.
func (t *Tensors) Visible(at int) (names []string) {
	for _, from := range append([]int{Request}, t.graph.Ancestors(at)...) {
		specs, _ := t.Of(from)
		for _, s := range specs {
			if !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// Answer returns the outputs of the final stages, with which a query is answered. Of one name it has the last stage's.
// It is nil when they are not known, or not their data types.
func (t *Tensors) Answer() (out []tensor.Spec) {
	for at := range t.outputs {
		if !t.graph.Final(at) {
			continue
		}
		if !t.outputs[at].all {
			return nil
		}
		for _, s := range t.outputs[at].specs {
			switch same := Find(out, s.Name); {
			case s.DType == tensor.Invalid:
				return nil
			case same != nil:
				*same = s
			default:
				out = append(out, s)
			}
		}
	}
	return out
}

// Interface returns what an app takes and gives, from what is known of its stages. The inputs are those of the first
// stage, and those of later stages that no ancestor gives; of one name the first stage's. They are nil when it is not
// known what the first stage takes. The outputs are those of Tensors.Answer. wiring is by StageID; of stages beyond its
// end nothing is known. The spec must be valid.
func Interface(spec *serving.Spec, wiring []Wiring, a serving.AppID) (inputs, outputs []tensor.Spec, err error) {
	g := New(spec, a)
	t, err := Wire(g, wiring)
	if err != nil {
		return nil, nil, fmt.Errorf("app %q: %w", spec.Apps[a].Name, err)
	}
	if wiringOf(wiring, g.Stage(0)).Inputs != nil {
		for at := range g.Len() {
			w := wiringOf(wiring, g.Stage(at))
			for _, s := range w.Inputs {
				s.Name = w.TakenAs(s.Name)
				if from, certain := t.Source(at, s.Name); certain && from == Request && !t.Gives(Request, s.Name) {
					t.Bring(s)
				}
			}
		}
	}
	return t.request, t.Answer(), nil
}
