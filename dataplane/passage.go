package dataplane

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

// journey is a query on its way through an app of several stages: the tensors that its later stages and its answer
// need.
type journey struct {
	graph   *graph
	request []tensor.Tensor
	items   int // that the request brought
	stages  []passage
}

// passage is a query's progress at one stage. How many items a stage works on is counted as the engine counts it: a
// join takes the most that any edge delivers, and a stage that is sent nothing is passed over.
type passage struct {
	edges int // that have delivered
	items int
	done  int // items whose parts have ended
	over  bool
	sent  []int // by edge
	parts []stagePart
	// joined, once over, by the query's names; those that nobody needs any more have lost their data
	outputs []tensor.Tensor
}

type stagePart struct {
	offset, items int
	outputs       []tensor.Tensor
}

func newJourney(g *graph, r *Request) *journey {
	j := &journey{
		graph: g, request: slices.Clone(r.Inputs), items: max(r.Items, 1), stages: make([]passage, len(g.nodes)),
	}
	edges := 0
	for k := range g.nodes {
		edges += len(g.nodes[k].edges)
	}
	sent := make([]int, edges)
	for k := range g.nodes {
		n := len(g.nodes[k].edges)
		j.stages[k].sent, sent = sent[:n:n], sent[n:]
	}
	j.stages[0].items = j.items
	return j
}

// gives tells whether a stage gives, or is known to be about to give, a tensor of that name.
func (j *journey) gives(at int, name string) bool {
	return j.graph.nodes[at].has(name) || find(j.stages[at].outputs, name) >= 0
}

func find(tensors []tensor.Tensor, name string) int {
	return slices.IndexFunc(tensors, func(t tensor.Tensor) bool { return t.Name == name })
}

// source returns where a stage finds a tensor: at the latest of the stages before it that gives it, or in the request.
func (j *journey) source(at int, name string) int {
	before := j.graph.nodes[at].before
	for k := len(before) - 1; k >= 0; k-- {
		if j.gives(before[k], name) {
			return before[k]
		}
	}
	return theRequest
}

func (j *journey) tensors(from int) []tensor.Tensor {
	if from == theRequest {
		return j.request
	}
	return j.stages[from].outputs
}

// inputs returns what a stage is handed for some of its items.
func (j *journey) inputs(at, offset, items int) ([]tensor.Tensor, error) {
	n := &j.graph.nodes[at]
	if n.takes == nil {
		return j.everything(at, offset, items)
	}
	out := make([]tensor.Tensor, len(n.takes))
	for k, x := range n.takes {
		from := j.source(at, x.name)
		have := j.tensors(from)
		i := find(have, x.name)
		if i < 0 {
			return nil, fmt.Errorf("stage %q takes tensor %q as its input %q: neither the request nor a stage before "+
				"it gives one of that name, which inputs of the stage may change", n.name, x.name, x.input)
		}
		t, err := j.cut(at, from, &have[i], offset, items)
		if err != nil {
			return nil, err
		}
		t.Name = x.input
		out[k] = t
	}
	return out, nil
}

// everything is what a stage is handed of which nothing is known: the request at the first, and at the others all that
// the stages that feed it give; of one name the latest.
func (j *journey) everything(at, offset, items int) ([]tensor.Tensor, error) {
	from := j.graph.nodes[at].feeds
	if at == 0 {
		from = []int{theRequest}
	}
	var out []tensor.Tensor
	for _, f := range from {
		have := j.tensors(f)
		for k := range have {
			t, err := j.cut(at, f, &have[k], offset, items)
			if err != nil {
				return nil, err
			}
			if i := find(out, t.Name); i >= 0 {
				out[i] = t
			} else {
				out = append(out, t)
			}
		}
	}
	return out, nil
}

// cut returns the rows of a tensor that belong to some items of a stage; a tensor whose rows are not the stage's items
// as a whole.
func (j *journey) cut(at, from int, t *tensor.Tensor, offset, items int) (tensor.Tensor, error) {
	if offset == 0 && items == j.stages[at].items || !j.aligned(at, from, t) {
		return *t, nil
	}
	return t.Rows(int64(offset), int64(offset+items))
}

// aligned tells whether the rows of a tensor are the items of a stage: not because they are as many, but because the
// items have come from the same rows. An image of 3 channels is not the 3 boxes that were found in it.
func (j *journey) aligned(at, from int, t *tensor.Tensor) bool {
	total := j.stages[at].items
	if len(t.Shape) == 0 || t.Shape[0] != int64(total) {
		return false
	}
	origins := j.graph.nodes[at].origins
	if from == theRequest {
		return total == j.items && slices.Contains(origins, origin{node: theRequest})
	}
	for _, o := range origins {
		if o.node == from && j.sentRows(from, o.rows) == total {
			return true
		}
		if j.stages[from].items == total && slices.Contains(j.graph.nodes[from].origins, o) {
			return true
		}
	}
	return false
}

// sentRows is how many rows of a tensor a stage has sent on.
func (j *journey) sentRows(from int, rows string) int {
	for k, e := range j.graph.nodes[from].edges {
		if e.rows == rows {
			return j.stages[from].sent[k]
		}
	}
	return -1
}

// result is what a runner made of a part, checked.
type result struct {
	outputs []tensor.Tensor // by the query's names
	sent    []int32         // by edge; nil when every edge hands the items on as they are
}

// check looks at what a runner made of a part of a query: with an error nothing of it counts. before are the results of
// the parts of the same query in the same batch.
func (j *journey) check(at int, part *Part, limit int, before []result) (result, error) {
	n, p := &j.graph.nodes[at], &j.stages[at]
	r := result{outputs: n.given(part.Outputs)}
	for k := range r.outputs {
		if err := r.outputs[k].Validate(); err != nil {
			return r, fmt.Errorf("stage %q: output: %w", n.name, err)
		}
	}
	var first []tensor.Tensor
	switch {
	case len(p.parts) > 0:
		first = p.parts[0].outputs
	case len(before) > 0:
		first = before[0].outputs
	}
	if err := joinable(first, r.outputs, part.Items < p.items); err != nil {
		return r, fmt.Errorf("stage %q: %w", n.name, err)
	}
	r.sent = make([]int32, len(n.edges))
	for k, e := range n.edges {
		rows := sends(n, k, part.Items, r.outputs)
		total := int64(p.sent[k])
		for _, b := range before {
			total += int64(b.sent[k])
		}
		switch {
		case rows < 0:
			return r, fmt.Errorf("stage %q gives no tensor %q with rows that it could send to %q", n.name, e.rows,
				j.graph.nodes[e.to].name)
		case e.rows != "" && rows > int64(limit)-total:
			return r, fmt.Errorf("stage %q: tensor %q has %d rows for %q, of one query at most %d are taken "+
				"(server.limits.rows): have an earlier stage keep fewer",
				n.name, e.rows, total+rows, j.graph.nodes[e.to].name, limit)
		}
		r.sent[k] = int32(rows)
	}
	return r, nil
}

// sends is how many items go along an edge for some items of a stage and what was made of them, by the query's names;
// -1 when that cannot be told.
func sends(n *node, edge, items int, outputs []tensor.Tensor) int64 {
	rows := n.edges[edge].rows
	if rows == "" {
		return int64(items)
	}
	if i := find(outputs, rows); i >= 0 && len(outputs[i].Shape) > 0 {
		return outputs[i].Shape[0]
	}
	return -1
}

// given returns what a runner made by the query's names.
func (n *node) given(outputs []tensor.Tensor) []tensor.Tensor {
	if len(n.gives) == 0 {
		return outputs
	}
	outputs = slices.Clone(outputs)
	for k := range outputs {
		outputs[k].Name = renamed(n.gives, outputs[k].Name)
	}
	return outputs
}

// joinable tells what keeps the outputs of two parts from being joined along their rows.
func joinable(first, next []tensor.Tensor, several bool) error {
	if !several {
		return nil
	}
	for k := range next {
		if len(next[k].Shape) == 0 {
			return fmt.Errorf(
				"output %q has no rows, and the items of the query run in several batches: nothing can be joined",
				next[k].Name)
		}
	}
	if first == nil {
		return nil
	}
	if len(first) != len(next) {
		return fmt.Errorf("it gives %d outputs for some items of a query and %d for others", len(first), len(next))
	}
	for k := range next {
		a, b := &first[k], &next[k]
		if a.Name != b.Name || a.DType != b.DType || !slices.Equal(a.Shape[1:], b.Shape[1:]) {
			return fmt.Errorf(
				"output %q is %s%v for some items of a query, and %q is %s%v for others: only the first dimension "+
					"may differ", a.Name, a.DType, a.Shape, b.Name, b.DType, b.Shape)
		}
	}
	return nil
}

// keep takes over what a runner made of a part.
func (j *journey) keep(at, offset, items int, r result) {
	p := &j.stages[at]
	k := 0
	for k < len(p.parts) && p.parts[k].offset < offset {
		k++
	}
	p.parts = slices.Insert(p.parts, k, stagePart{offset, items, r.outputs})
	p.done += items
	for k := range r.sent {
		p.sent[k] += int(r.sent[k])
	}
	if p.done < p.items {
		return
	}
	p.outputs, p.parts = joined(p.parts), nil
	j.leave(at)
	j.release()
}

// leave hands on what a stage has made.
func (j *journey) leave(at int) {
	j.stages[at].over = true
	for k, e := range j.graph.nodes[at].edges {
		to := &j.stages[e.to]
		to.edges++
		to.items = max(to.items, j.stages[at].sent[k])
		if to.edges == j.graph.nodes[e.to].joins && to.items == 0 {
			to.outputs = nothing(j.graph.nodes[e.to].outputs)
			j.leave(e.to)
		}
	}
}

// nothing is what a stage gives that was passed over: tensors without rows, as far as it is known what it gives.
func nothing(specs []tensor.Spec) []tensor.Tensor {
	out := make([]tensor.Tensor, len(specs))
	for k, s := range specs {
		out[k] = tensor.Tensor{Name: s.Name, DType: s.DType, Shape: make([]int64, max(len(s.Shape), 1))}
		for d := 1; d < len(s.Shape); d++ {
			out[k].Shape[d] = max(s.Shape[d], 0)
		}
	}
	return out
}

// joined concatenates the rows of the parts' outputs, which joinable has found to fit.
func joined(parts []stagePart) []tensor.Tensor {
	if len(parts) == 1 {
		return slices.Clone(parts[0].outputs)
	}
	out := make([]tensor.Tensor, len(parts[0].outputs))
	for k, first := range parts[0].outputs {
		o := tensor.Tensor{Name: first.Name, DType: first.DType, Shape: slices.Clone(first.Shape)}
		o.Shape[0] = 0
		size := 0
		for _, p := range parts {
			size += len(p.outputs[k].Data)
		}
		o.Data = make([]byte, 0, size)
		for _, p := range parts {
			o.Shape[0] += p.outputs[k].Shape[0]
			o.Data = append(o.Data, p.outputs[k].Data...)
		}
		out[k] = o
	}
	return out
}

// release lets go of the data that neither a later stage nor the answer needs.
func (j *journey) release() {
	for from := theRequest; from < len(j.graph.nodes); from++ {
		if from != theRequest && (j.graph.nodes[from].final || !j.stages[from].over) {
			continue
		}
		have := j.tensors(from)
		for k := range have {
			if have[k].Data != nil && !j.needed(from, have[k].Name) {
				have[k].Data, have[k].Shape = nil, nil
			}
		}
	}
}

// needed tells whether a stage that is not over takes a tensor.
func (j *journey) needed(from int, name string) bool {
	for at := range j.graph.nodes {
		n := &j.graph.nodes[at]
		switch {
		case j.stages[at].over:
		case n.takes == nil:
			if from == theRequest && at == 0 || slices.Contains(n.feeds, from) {
				return true
			}
		case slices.ContainsFunc(n.takes, func(x take) bool { return x.name == name }) && j.source(at, name) == from:
			return true
		}
	}
	return false
}

// answer returns the outputs of the final stages; of one name that of the latest that was not passed over.
func (j *journey) answer() []tensor.Tensor {
	var out []tensor.Tensor
	for at := range j.graph.nodes {
		p := &j.stages[at]
		if !j.graph.nodes[at].final {
			continue
		}
		for _, o := range p.outputs {
			switch i := find(out, o.Name); {
			case i < 0:
				out = append(out, o)
			case p.items > 0:
				out[i] = o
			}
		}
	}
	return out
}
