package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/internal/tensor/ops"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/tensor"
)

// wiring finds out which tensors the stages of an app take and give, and what is known of them.
type wiring struct {
	r     *resolver
	file  *App
	app   *serving.App
	path  string
	views []stageView // in topological order, as app.Stages

	graph   *pipeline.Graph
	tensors *pipeline.Tensors
	given   bool    // the file lists the request's tensors
	asked   []asked // that no stage gives, and so the request must bring
	brought []asked // all that stages take from the request
	unknown bool    // the inputs of the first stage are not known
}

func (w *wiring) resolve(a serving.AppID) {
	s := w.r.w.Spec
	w.graph = pipeline.New(s, a)
	w.tensors = pipeline.NewTensors(w.graph)
	for _, t := range tensors(w.file.Inputs) {
		w.tensors.Bring(t)
		w.given = true
	}
	for k, st := range w.app.Stages {
		v := &w.views[k]
		info := pipeline.Wiring{Takes: v.Inputs, Gives: v.Outputs}
		if f := w.r.w.Variants[s.Stages[st].Variants[0]].Function; f != nil {
			w.function(k, f, &info)
		} else {
			w.model(k, s.Stages[st].Variants, &info)
		}
		w.r.w.Stages = append(w.r.w.Stages, info)
		w.rows(k)
	}
	w.doubts()
}

// source returns the tensor that a stage sees under a name; nil where there is none, or none is known. sure is false
// when a stage of which not all is known may give it, or its data type is not known.
func (w *wiring) source(k int, name string) (found *tensor.Spec, sure bool) {
	from, certain := w.tensors.Source(k, name)
	if !certain {
		return nil, false
	}
	specs, _ := w.tensors.Of(from)
	found = pipeline.Find(specs, name)
	return found, from == pipeline.Request || found.DType != tensor.Invalid
}

// bring remembers that a stage takes a tensor from the request, if it does.
func (w *wiring) bring(k int, input, name string) {
	if from, certain := w.tensors.Source(k, name); certain && from == pipeline.Request {
		w.brought = append(w.brought, asked{k, input, name})
	}
}

// missing handles a tensor that a stage takes and no stage is known to give. The request must bring it, unless the file
// lists the request's tensors: then it is a problem.
func (w *wiring) missing(k int, input string, spec tensor.Spec) {
	at := w.tensorPath(k, "inputs", input)
	switch {
	case w.given:
		var hint string
		if seen := w.tensors.Visible(k); len(seen) <= maxHints {
			if hint, _ = didYouMean(spec.Name, seen); hint == "" {
				hint = ": there is " + oneOf(seen)
			}
		}
		w.r.c.addf(at, "neither the request nor a stage before this one gives a tensor %q, which input %q is%s",
			spec.Name, input, hint)
	case w.unknown:
	case spec.DType == tensor.Invalid:
		w.r.c.addf(w.path+".inputs",
			"is missing: stage %q takes tensor %q of the request, and cannot tell of which datatype it is",
			w.views[k].Name, spec.Name)
	default:
		w.tensors.Bring(spec)
		w.asked = append(w.asked, asked{k, input, spec.Name})
	}
}

// asked is an input of a stage that only the request can be.
type asked struct {
	stage       int
	input, name string
}

// doubts reports tensors that a later stage takes from the request and that are perhaps meant to come from a stage.
func (w *wiring) doubts() {
	for _, a := range w.asked {
		if a.stage == 0 {
			continue
		}
		from := 0
		for from < w.graph.Len() && !w.tensors.Gives(from, a.name) {
			from++
		}
		switch {
		case from < w.graph.Len() && from != a.stage:
			w.r.c.addf(w.tensorPath(a.stage, "inputs", a.input),
				"input %q is tensor %q, which stage %q gives, but no way leads from there to this stage", a.input,
				a.name, w.views[from].Name)
		default:
			w.r.w.warnf("%s: no stage gives tensor %q, which stage %q takes: every request must bring it", w.path,
				a.name, w.views[a.stage].Name)
		}
	}
}

// tensorPath is the path of an entry of a stage's inputs or outputs, if it is given, or of the stage.
func (w *wiring) tensorPath(k int, key, name string) string {
	p := join(w.views[k].path+"."+key, shown(name))
	if w.r.f.has(p) {
		return p
	}
	return w.views[k].path
}

// function wires a stage that is a function. It takes an optional input when the file names it or an earlier stage
// gives it.
func (w *wiring) function(k int, f *ops.Function, info *pipeline.Wiring) {
	v := &w.views[k]
	sure := true
	for _, p := range f.Inputs() {
		name := info.TakenAs(p.Name)
		found, known := w.source(k, name)
		if p.Optional && found == nil && v.Inputs[p.Name] == "" {
			continue
		}
		w.bring(k, p.Name, name)
		spec := tensor.Spec{Name: p.Name}
		switch {
		case found != nil:
			spec.DType, spec.Shape = found.DType, found.Shape
		case known:
			spec.Name = name
			if len(p.DTypes) == 1 {
				spec.DType = p.DTypes[0]
			}
			w.missing(k, p.Name, spec)
			spec.Name = p.Name
		}
		if spec.DType == tensor.Invalid { // to be measured with: what it is, is seen when it comes
			sure = false
			spec.DType = tensor.FP32
			if len(p.DTypes) > 0 {
				spec.DType = p.DTypes[0]
			}
		}
		info.Inputs = append(info.Inputs, spec)
	}
	outputs, err := f.Specs(info.Inputs)
	if err != nil {
		w.r.c.addf(v.path, "function %s: %v", f.Name(), err)
	}
	if err == nil && sure {
		info.Outputs = outputs
	}
	for _, p := range f.Outputs() { // their names are known in any case
		spec := tensor.Spec{Name: p.Name}
		if known := pipeline.Find(info.Outputs, p.Name); known != nil {
			spec = *known
		}
		w.give(k, info, p.Name, spec)
	}
	w.tensors.GivesNoMore(k)
}

// model wires a stage that models do.
func (w *wiring) model(k int, variants []serving.VariantID, info *pipeline.Wiring) {
	v := &w.views[k]
	info.Inputs = w.r.agree(variants, v.path, "inputs", func(b *Binding) []tensor.Spec { return b.Inputs })
	info.Outputs = w.r.agree(variants, v.path, "outputs", func(b *Binding) []tensor.Spec { return b.Outputs })
	w.unknown = w.unknown || k == 0 && info.Inputs == nil
	for _, m := range []struct {
		key   string
		names map[string]string
		specs []tensor.Spec
	}{{"inputs", v.Inputs, info.Inputs}, {"outputs", v.Outputs, info.Outputs}} {
		for _, name := range pipeline.Unknown(m.names, m.specs) {
			w.r.c.known(name, pipeline.Names(m.specs), join(v.path+"."+m.key, shown(name)),
				strings.TrimSuffix(m.key, "s")+" of the models of this stage")
		}
	}
	for _, in := range info.Inputs {
		name := info.TakenAs(in.Name)
		found, known := w.source(k, name)
		w.bring(k, in.Name, name)
		switch {
		case found == nil && known:
			spec := in
			spec.Name = name
			w.missing(k, in.Name, spec)
		case found != nil && found.DType != tensor.Invalid:
			change, ok := rebatched(found.Shape, in.Shape, w.hasBatch(variants))
			if change != pipeline.KeepBatch {
				if info.Batch == nil {
					info.Batch = make(map[string]pipeline.BatchChange)
				}
				info.Batch[in.Name] = change
			}
			if found.DType != in.DType || !ok {
				w.r.c.addf(w.tensorPath(k, "inputs", in.Name), "tensor %s is not what the models take as %s",
					show([]tensor.Spec{*found}), show([]tensor.Spec{in}))
			}
		}
	}
	for _, out := range info.Outputs {
		w.give(k, info, out.Name, out)
	}
	if info.Outputs != nil {
		w.tensors.GivesNoMore(k)
		return
	}
	for _, out := range slices.Sorted(maps.Keys(v.Outputs)) {
		w.give(k, info, out, tensor.Spec{Name: out})
	}
}

// hasBatch tells whether the models of a stage have a batch dimension.
func (w *wiring) hasBatch(variants []serving.VariantID) bool {
	b := &w.r.w.Variants[variants[0]]
	return b.Batched || b.Rows > 0
}

// rebatched tells whether a tensor of one shape can be the input of another, and what happens to its batch dimension
// then: a tensor without one is one item of a model that batches, and a batch of one can be handed to a model that does
// not.
func rebatched(from, to []int64, batch bool) (pipeline.BatchChange, bool) {
	switch {
	case fits(from, to):
		return pipeline.KeepBatch, true
	case batch && len(to) > 0 && fits(from, to[1:]):
		return pipeline.AddBatch, true
	case !batch && len(from) > 0 && (from[0] == -1 || from[0] == 1) && fits(from[1:], to):
		return pipeline.DropBatch, true
	}
	return pipeline.KeepBatch, false
}

// give puts an output into the query's name space.
func (w *wiring) give(k int, info *pipeline.Wiring, output string, spec tensor.Spec) {
	spec.Name = info.GivenAs(output)
	if !w.tensors.Give(k, spec) {
		w.r.c.addf(w.tensorPath(k, "outputs", output), "another output of the stage is called %q, too", spec.Name)
	}
}

// rows checks that a stage gives the tensors whose rows it hands on.
func (w *wiring) rows(k int) {
	specs, all := w.tensors.Of(k)
	for j, e := range w.views[k].Next {
		path := at(w.views[k].path+".next", j) + ".rows"
		found := pipeline.Find(specs, e.Rows)
		switch {
		case e.Rows == "":
		case found == nil && all:
			w.r.c.known(e.Rows, pipeline.Names(specs), path, "output of this stage")
		case found != nil && found.Shape != nil && len(found.Shape) == 0:
			w.r.c.addf(path, "tensor %q has no rows: it is a scalar", e.Rows)
		}
	}
}

// batched tells whether the first dimension of all of a request's tensors counts items: not when the request brings
// boxes beside the one picture that they are in.
func (w *wiring) batched() bool {
	first := func(name string) bool {
		return slices.ContainsFunc(w.brought, func(a asked) bool { return a.stage == 0 && a.name == name })
	}
	all := true
	for k, st := range w.app.Stages {
		beside := slices.ContainsFunc(w.brought, func(a asked) bool { return a.stage == k && !first(a.name) })
		for _, v := range w.r.w.Spec.Stages[st].Variants {
			b := &w.r.w.Variants[v]
			if b.Function != nil {
				b.Batched = b.Function.ItemRows(w.r.w.Stages[st].Inputs)
			}
			if k == 0 || beside && b.Function != nil {
				all = all && b.Batched
			}
		}
		for _, a := range w.brought {
			// A tensor of the request that gets its batch dimension on the way is one item.
			all = all && (a.stage != k || w.r.w.Stages[st].Batch[a.input] != pipeline.AddBatch)
		}
	}
	return all
}

// requested returns the tensors that a request brings; nil when they are not known.
func (w *wiring) requested() []tensor.Spec {
	specs, _ := w.tensors.Of(pipeline.Request)
	return specs
}

// fits tells whether tensors of a shape can be of the other, where -1 is any size and nil any shape.
func fits(a, b []int64) bool {
	return a == nil || b == nil || slices.EqualFunc(a, b, func(x, y int64) bool { return x == y || x == -1 || y == -1 })
}
