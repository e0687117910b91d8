package dataplane

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// graph is an app of several stages as the hand-over between them sees it. Its nodes are numbered as in App.Stages.
type graph struct {
	nodes []node
}

// theRequest stands for the request where the number of a node is asked for.
const theRequest = -1

type node struct {
	id      serving.StageID
	name    string
	edges   []link
	joins   int
	feeds   []int    // the nodes that feed it, ascending
	before  []int    // the nodes from which it is reached, ascending
	origins []origin // what its items are
	takes   []take   // nil where nothing is known of it: all that is handed to it
	gives   map[string]string
	outputs []tensor.Spec // by the query's names; nil when not known
	final   bool
	counts  bool // an edge sends as many items as a tensor has rows
}

// link is an edge; rows names the tensor of the query whose rows become the items of the next stage, if any.
type link struct {
	to   int
	rows string
}

// origin says of what the items of a stage are the rows: of a tensor that a node gives, or of the request.
type origin struct {
	node int
	rows string
}

// take is an input of a model and the tensor of the query that it is.
type take struct{ input, name string }

// newGraph checks the wiring of an app and returns what the hand-over needs; nil for an app of one stage.
func newGraph(spec *serving.Spec, wiring []Wiring, a serving.AppID) (*graph, error) {
	app := &spec.Apps[a]
	if len(app.Stages) == 1 {
		return nil, nil
	}
	g := &graph{nodes: make([]node, len(app.Stages))}
	at := make(map[serving.StageID]int, len(app.Stages))
	for k, s := range app.Stages {
		at[s] = k
	}
	g.nodes[0].origins = []origin{{node: theRequest}}
	for k, s := range app.Stages {
		n, st := &g.nodes[k], &spec.Stages[s]
		n.id, n.name, n.joins, n.final = s, st.Name, st.Joins, len(st.Next) == 0
		if int(s) < len(wiring) {
			if err := n.wire(&wiring[s]); err != nil {
				return nil, fmt.Errorf("dataplane: app %q: stage %q: %w", app.Name, st.Name, err)
			}
		}
		for _, e := range st.Next {
			to := &g.nodes[at[e.To]]
			switch {
			case e.Rows == "" && e.FanOut != 1:
				return nil, fmt.Errorf("dataplane: app %q: stage %q sends %v items to %q for each it gets: a live "+
					"stage sends one, or as many as a tensor has rows: name the tensor as rows",
					app.Name, st.Name, e.FanOut, spec.Stages[e.To].Name)
			case e.Rows != "" && n.outputs != nil && !n.has(e.Rows):
				return nil, fmt.Errorf("dataplane: app %q: stage %q sends the rows of %q to %q, but gives %v", app.Name,
					st.Name, e.Rows, spec.Stages[e.To].Name, names(n.outputs))
			}
			n.counts = n.counts || e.Rows != ""
			n.edges = append(n.edges, link{to: at[e.To], rows: e.Rows})
			to.feeds = append(to.feeds, k)
			to.before = union(union(to.before, n.before), []int{k})
			if e.Rows != "" {
				to.origins = union(to.origins, []origin{{node: k, rows: e.Rows}})
			} else {
				to.origins = union(to.origins, n.origins)
			}
		}
	}
	for k := range g.nodes {
		slices.Sort(g.nodes[k].feeds)
		slices.Sort(g.nodes[k].before)
	}
	return g, nil
}

// newGraphs returns the graphs of the apps from the given one on.
func newGraphs(spec *serving.Spec, wiring []Wiring, from int) ([]*graph, error) {
	out := make([]*graph, 0, len(spec.Apps)-min(from, len(spec.Apps)))
	for a := from; a < len(spec.Apps); a++ {
		g, err := newGraph(spec, wiring, serving.AppID(a))
		if err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return out, nil
}

func union[T comparable](a, b []T) []T {
	out := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

func names(specs []tensor.Spec) []string {
	out := make([]string, len(specs))
	for k := range specs {
		out[k] = specs[k].Name
	}
	return out
}

// wire fills in what a node takes and gives.
func (n *node) wire(w *Wiring) error {
	known := func(what string, specs []tensor.Spec, m map[string]string) error {
		for name := range m {
			if specs != nil && !slices.ContainsFunc(specs, func(s tensor.Spec) bool { return s.Name == name }) {
				return fmt.Errorf("%q is no %s of its model, which has %v", name, what, names(specs))
			}
		}
		return nil
	}
	if err := known("input", w.Inputs, w.Takes); err != nil {
		return err
	}
	if err := known("output", w.Outputs, w.Gives); err != nil {
		return err
	}
	n.gives = w.Gives
	for _, s := range w.Inputs {
		n.takes = append(n.takes, take{s.Name, renamed(w.Takes, s.Name)})
	}
	if w.Inputs == nil {
		for input, name := range w.Takes {
			n.takes = append(n.takes, take{input, name})
		}
		slices.SortFunc(n.takes, func(a, b take) int { return cmp.Compare(a.input, b.input) })
	}
	for _, s := range w.Outputs {
		s.Name = renamed(w.Gives, s.Name)
		if n.has(s.Name) {
			return fmt.Errorf("two of its outputs are called %q", s.Name)
		}
		n.outputs = append(n.outputs, s)
	}
	return nil
}

func renamed(m map[string]string, name string) string {
	if to, ok := m[name]; ok {
		return to
	}
	return name
}

// has tells whether the stage is known to give a tensor.
func (n *node) has(name string) bool {
	return slices.ContainsFunc(n.outputs, func(s tensor.Spec) bool { return s.Name == name })
}

// node returns the number of a stage.
func (g *graph) node(s serving.StageID) int {
	return slices.IndexFunc(g.nodes, func(n node) bool { return n.id == s })
}

// Interface returns what an app of several stages takes and gives, from what is known of its stages: the inputs of its
// first stage, those tensors that later stages take and no stage before them gives, and the outputs of its final
// stages. What is not known is nil.
func Interface(spec *serving.Spec, wiring []Wiring, a serving.AppID) (inputs, outputs []tensor.Spec, err error) {
	g, err := newGraph(spec, wiring, a)
	if err != nil || g == nil {
		return nil, nil, err
	}
	add := func(to []tensor.Spec, s tensor.Spec, name string) []tensor.Spec {
		if slices.ContainsFunc(to, func(o tensor.Spec) bool { return o.Name == name }) {
			return to
		}
		s.Name = name
		return append(to, s)
	}
	for k := range g.nodes {
		n := &g.nodes[k]
		if int(n.id) >= len(wiring) {
			break
		}
		w := &wiring[n.id]
		if k == 0 && w.Inputs == nil {
			break // what the first stage takes is not known, and so not what a request must bring
		}
		for _, s := range w.Inputs {
			name := renamed(w.Takes, s.Name)
			given := slices.ContainsFunc(n.before, func(b int) bool {
				return g.nodes[b].outputs == nil || g.nodes[b].has(name)
			})
			if !given {
				inputs = add(inputs, s, name)
			}
		}
	}
	for k := range g.nodes {
		n := &g.nodes[k]
		switch {
		case !n.final:
		case n.outputs == nil:
			return inputs, nil, nil
		default:
			for _, s := range n.outputs {
				outputs = add(outputs, s, s.Name)
			}
		}
	}
	return inputs, outputs, nil
}
