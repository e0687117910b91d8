package dataplane

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/tensor"
)

// execution is one query in an app of several stages: how far it is, and the tensors that later stages and the answer
// need. Its progress is counted as the engine counts it, but later where answers of a stage may be improved: once a
// stage behind begins, or the query ends.
type execution struct {
	graph    *graph
	progress pipeline.Progress
	request  []tensor.Tensor
	stages   []stageOutputs // by position
}

// stageOutputs is the outputs of a query's stage, by the query's names.
type stageOutputs struct {
	// parts are those that have ended, by offset; none once the stage is over. Until then the answers to its items may
	// be replaced by better ones.
	parts []partOutputs
	// joined has the outputs of all parts once the stage is over. Tensors that nothing needs any more are without data.
	joined []tensor.Tensor
}

type partOutputs struct {
	offset, items int // of the first item, and how many
	partResult
}

// newExecution begins the execution of a request. It does not change the request.
func newExecution(g *graph, r *Request) *execution {
	x := &execution{graph: g, request: slices.Clone(r.Inputs), stages: make([]stageOutputs, g.Len())}
	x.progress.Start(g.Graph, int32(max(r.Items, 1)))
	return x
}

func find(tensors []tensor.Tensor, name string) int {
	return slices.IndexFunc(tensors, func(t tensor.Tensor) bool { return t.Name == name })
}

// source returns from where a stage takes a tensor: the position of the latest ancestor that gives it, or is known to,
// or pipeline.Request.
func (x *execution) source(at int, name string) int {
	return x.graph.Latest(at, func(ancestor int) bool {
		return x.graph.tensors.Gives(ancestor, name) || find(x.stages[ancestor].joined, name) >= 0
	})
}

// tensors returns the outputs of a stage that is over, or the request's tensors.
func (x *execution) tensors(from int) []tensor.Tensor {
	if from == pipeline.Request {
		return x.request
	}
	return x.stages[from].joined
}

// inputs returns the inputs of a stage for some of its items. The stages before it are over.
func (x *execution) inputs(at, offset, items int) ([]tensor.Tensor, error) {
	for _, before := range x.graph.Ancestors(at) {
		x.advance(before)
	}
	takes := x.graph.stages[at].takes
	if takes == nil {
		return x.allInputs(at, offset, items)
	}
	out := make([]tensor.Tensor, len(takes))
	for k, take := range takes {
		from := x.source(at, take.Name)
		have := x.tensors(from)
		i := find(have, take.Name)
		if i < 0 {
			return nil, fmt.Errorf("stage %q takes tensor %q as its input %q: neither the request nor a stage before "+
				"it gives one of that name, which inputs of the stage may change",
				x.graph.Name(at), take.Name, take.Input)
		}
		t, err := x.cut(at, from, &have[i], offset, items)
		if err != nil {
			return nil, err
		}
		if t.Shape, err = x.rebatched(at, take.Input, &t); err != nil {
			return nil, err
		}
		t.Name = take.Input
		out[k] = t
	}
	return out, nil
}

// rebatched returns the shape with which a tensor is handed to an input of a stage: with or without a batch dimension
// of one.
func (x *execution) rebatched(at int, input string, t *tensor.Tensor) ([]int64, error) {
	switch x.graph.stages[at].wiring.Batch[input] {
	case pipeline.AddBatch:
		return append([]int64{1}, t.Shape...), nil
	case pipeline.DropBatch:
		if len(t.Shape) == 0 || t.Shape[0] != 1 {
			return nil, fmt.Errorf("%w: stage %q has no batch dimension, and tensor %q, which it takes as its input "+
				"%q, has shape %v: only a batch of 1 can be handed on to it",
				ErrUnfit, x.graph.Name(at), t.Name, input, tensor.Dims(t.Shape))
		}
		return t.Shape[1:], nil
	}
	return t.Shape, nil
}

// allInputs returns the inputs of a stage of which nothing is known: the tensors of the request at the first, all
// outputs of the predecessors at others. Of one name it returns the latest.
func (x *execution) allInputs(at, offset, items int) ([]tensor.Tensor, error) {
	from := x.graph.Predecessors(at)
	if at == 0 {
		from = []int{pipeline.Request}
	}
	var out []tensor.Tensor
	for _, f := range from {
		have := x.tensors(f)
		for k := range have {
			t, err := x.cut(at, f, &have[k], offset, items)
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

// cut returns the rows of a tensor that belong to some items of a stage. It returns the whole tensor where its rows are
// not the stage's items.
func (x *execution) cut(at, from int, t *tensor.Tensor, offset, items int) (tensor.Tensor, error) {
	switch {
	case offset == 0 && items == int(x.progress.Items(at)):
		return *t, nil
	case len(t.Shape) == 0 || !x.progress.RowsAreItems(at, from, t.Shape[0]):
		return *t, nil
	}
	return t.Rows(int64(offset), int64(offset+items))
}

// partResult is what a runner made of a part, checked.
type partResult struct {
	outputs []tensor.Tensor // by the query's names
	sent    []int32         // items along each edge of the stage
	lengths []int32         // of the longest of them; nil where none is known
}

// check returns what a runner made of a part, or what is wrong with it. same has the results of the parts of the same
// query that come before it in the same batch. At most limit rows go along an edge for one query.
func (x *execution) check(at int, part *Portion, limit int, same []partResult) (partResult, error) {
	name := x.graph.Name(at)
	r := partResult{outputs: x.graph.named(at, part.Outputs)}
	for k := range r.outputs {
		if err := r.outputs[k].Validate(); err != nil {
			return r, fmt.Errorf("stage %q: output: %w", name, err)
		}
	}
	var first []tensor.Tensor
	switch parts := x.stages[at].parts; {
	case len(parts) > 0:
		first = parts[0].outputs
	case len(same) > 0:
		first = same[0].outputs
	}
	if part.Items < int(x.progress.Items(at)) {
		if err := joinable(first, r.outputs); err != nil {
			return r, fmt.Errorf("stage %q: %w", name, err)
		}
	}
	edges := x.graph.Next(at)
	r.sent = make([]int32, len(edges))
	for k := range edges {
		e := &edges[k]
		rows, total := itemsSent(e, part.Items, r.outputs), int64(0)
		for _, b := range x.stages[at].parts {
			if b.offset != part.Offset {
				total += int64(b.sent[k])
			}
		}
		for _, b := range same {
			total += int64(b.sent[k])
		}
		switch {
		case rows < 0:
			return r, fmt.Errorf("stage %q gives no tensor %q with rows that it could send to %q", name, e.Rows,
				x.graph.Name(e.To))
		case e.Rows != "" && rows > int64(limit)-total:
			return r, fmt.Errorf("stage %q: tensor %q has %d rows for %q, of one query at most %d are taken "+
				"(server.limits.rows): have an earlier stage keep fewer",
				name, e.Rows, total+rows, x.graph.Name(e.To), limit)
		}
		r.sent[k] = int32(rows)
	}
	r.lengths = x.lengths(at, r.outputs)
	return r, nil
}

// lengths returns how long what a stage hands on is along each of its edges: by its outputs, or by what came before
// them where the stage behind takes that. Nil where none is known.
func (x *execution) lengths(at int, outputs []tensor.Tensor) []int32 {
	of := x.graph.stages[at].lengths
	if of == nil {
		return nil
	}
	out := make([]int32, len(of))
	edges := x.graph.Next(at)
	for k, l := range of {
		if l == nil {
			continue
		}
		if out[k] = l.Of(outputs); out[k] == 0 && find(outputs, l.Input) < 0 {
			out[k] = l.Of(x.tensors(x.source(edges[k].To, l.Input)))
		}
	}
	return out
}

// store takes over the checked result of a part, in the place of an earlier one of the same items. Where answers of the
// stage are final it is over with the last part.
func (x *execution) store(at, offset, items int, r partResult, final bool) {
	s := &x.stages[at]
	k, found := slices.BinarySearchFunc(s.parts, offset, func(p partOutputs, at int) int { return p.offset - at })
	if found {
		s.parts[k].partResult = r
	} else {
		s.parts = slices.Insert(s.parts, k, partOutputs{offset, items, r})
	}
	all := 0
	for _, p := range s.parts {
		all += p.items
	}
	if final && all >= int(x.progress.Items(at)) {
		x.advance(at)
	}
}

// advance counts the parts of a stage, unless that was done. The stages behind get their input.
func (x *execution) advance(at int) {
	if x.progress.Over(at) {
		return
	}
	changes := x.graph.changes[:0]
	for _, p := range x.stages[at].parts {
		changes = x.progress.Served(at, int32(p.items), p.sent, changes)
	}
	x.graph.changes = changes
	for _, c := range changes {
		s := &x.stages[c.Stage]
		switch c.Kind {
		case pipeline.Ran:
			s.joined, s.parts = joined(s.parts), nil
		case pipeline.PassedOver:
			specs, _ := x.graph.tensors.Of(c.Stage)
			s.joined = withoutRows(specs)
		}
	}
	if len(changes) > 0 {
		x.release()
	}
}

// release drops the data that neither a later stage nor the answer needs.
func (x *execution) release() {
	for from := pipeline.Request; from < x.graph.Len(); from++ {
		if from != pipeline.Request && (x.graph.Final(from) || !x.progress.Over(from)) {
			continue
		}
		have := x.tensors(from)
		for k := range have {
			if have[k].Data != nil && !x.needed(from, have[k].Name) {
				have[k].Data, have[k].Shape = nil, nil
			}
		}
	}
}

// needed tells whether a stage that is not over takes a tensor.
func (x *execution) needed(from int, name string) bool {
	for at := range x.graph.Len() {
		takes := x.graph.stages[at].takes
		switch {
		case x.progress.Over(at):
		case takes == nil:
			if from == pipeline.Request && at == 0 || slices.Contains(x.graph.Predecessors(at), from) {
				return true
			}
		case slices.ContainsFunc(takes, func(t pipeline.Take) bool { return t.Name == name }) &&
			x.source(at, name) == from:
			return true
		}
	}
	return false
}

// answer returns the outputs of the final stages. Of one name it returns that of the latest that was not passed over.
func (x *execution) answer() []tensor.Tensor {
	for at := range x.stages {
		x.advance(at)
	}
	var out []tensor.Tensor
	for at := range x.stages {
		if !x.graph.Final(at) {
			continue
		}
		for _, o := range x.stages[at].joined {
			switch i := find(out, o.Name); {
			case i < 0:
				out = append(out, o)
			case x.progress.Items(at) > 0:
				out[i] = o
			}
		}
	}
	return out
}
