package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
	"github.com/sluice-serving/sluice/tensor/ops"
)

// wiring finds out which tensors travel through the stages of an app, and what is known of them. A stage sees the
// tensors of the request and those of the stages on the way to it; of one name it takes that of the latest in
// topological order.
type wiring struct {
	r     *resolver
	file  *App
	app   *serving.App
	path  string
	views []stageView // in topological order, as app.Stages

	given     bool          // the file lists the request's tensors
	requested []tensor.Spec // by the request; nil when it is not known
	unknown   bool          // what the first stage takes is not known
	asked     []asked       // what nobody gives, and so the request must bring
	brought   []asked       // all that stages take from the request
	gives     []namespace   // by stage: its outputs
	before    [][]int       // by stage: those on the way to it, ascending
}

// namespace is the tensors that a stage gives, by the names of the query.
type namespace struct {
	known bool // these are all
	specs []tensor.Spec
}

func (n *namespace) find(name string) *tensor.Spec {
	if at := slices.IndexFunc(n.specs, func(s tensor.Spec) bool { return s.Name == name }); at >= 0 {
		return &n.specs[at]
	}
	return nil
}

func (w *wiring) resolve() {
	s := w.r.w.Spec
	w.requested = tensors(w.file.Inputs)
	w.given = w.requested != nil
	w.before, w.gives = make([][]int, len(w.views)), make([]namespace, len(w.views))
	for k, st := range w.app.Stages {
		for _, e := range s.Stages[st].Next {
			to := slices.Index(w.app.Stages, e.To)
			for _, x := range append(w.before[k], k) {
				if !slices.Contains(w.before[to], x) {
					w.before[to] = append(w.before[to], x)
				}
			}
		}
	}
	for k, st := range w.app.Stages {
		slices.Sort(w.before[k])
		v := &w.views[k]
		info := StageInfo{Takes: v.Inputs, Gives: v.Outputs}
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

// source returns what a stage sees under a name. sure is false when a stage may give it of which nothing is known.
func (w *wiring) source(k int, name string) (found *tensor.Spec, sure bool) {
	for i := len(w.before[k]) - 1; i >= 0; i-- {
		n := &w.gives[w.before[k][i]]
		if found = n.find(name); found != nil || !n.known {
			return found, found != nil && found.DType != tensor.Invalid
		}
	}
	n := namespace{specs: w.requested}
	return n.find(name), true
}

// bring remembers that a stage takes a tensor from the request, if it does.
func (w *wiring) bring(k int, input, name string) {
	for _, b := range w.before[k] {
		if w.gives[b].find(name) != nil || !w.gives[b].known {
			return
		}
	}
	w.brought = append(w.brought, asked{k, input, name})
}

// visible lists the names that a stage sees.
func (w *wiring) visible(k int) (out []string) {
	add := func(specs []tensor.Spec) {
		for _, s := range specs {
			if !slices.Contains(out, s.Name) {
				out = append(out, s.Name)
			}
		}
	}
	add(w.requested)
	for _, b := range w.before[k] {
		add(w.gives[b].specs)
	}
	return out
}

// missing handles a tensor that a stage takes and no stage is known to give. The request must bring it, unless the file
// lists the request's tensors: then it is a problem.
func (w *wiring) missing(k int, input string, spec tensor.Spec) {
	at := w.tensorPath(k, "inputs", input)
	switch {
	case w.given:
		var hint string
		if seen := w.visible(k); len(seen) <= maxHints {
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
		w.requested = append(w.requested, spec)
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
		from := slices.IndexFunc(w.gives, func(n namespace) bool { return n.find(a.name) != nil })
		switch {
		case from >= 0 && from != a.stage:
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

func renamed(m map[string]string, name string) string {
	if to, ok := m[name]; ok {
		return to
	}
	return name
}

// function wires a stage that is a function. It takes an optional input when the file names it or an earlier stage
// gives it.
func (w *wiring) function(k int, f *ops.Function, info *StageInfo) {
	v := &w.views[k]
	sure := true
	for _, p := range f.Inputs() {
		name := renamed(v.Inputs, p.Name)
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
		if at := slices.IndexFunc(info.Outputs, func(s tensor.Spec) bool { return s.Name == p.Name }); at >= 0 {
			spec = info.Outputs[at]
		}
		w.give(k, p.Name, spec)
	}
	w.gives[k].known = true
}

// model wires a stage that models do.
func (w *wiring) model(k int, variants []serving.VariantID, info *StageInfo) {
	v := &w.views[k]
	info.Inputs = w.r.agree(variants, v.path, "inputs", func(b *Binding) []tensor.Spec { return b.Inputs })
	info.Outputs = w.r.agree(variants, v.path, "outputs", func(b *Binding) []tensor.Spec { return b.Outputs })
	w.unknown = w.unknown || k == 0 && info.Inputs == nil
	for _, m := range []struct {
		key   string
		names map[string]string
		specs []tensor.Spec
	}{{"inputs", v.Inputs, info.Inputs}, {"outputs", v.Outputs, info.Outputs}} {
		if m.specs == nil {
			continue
		}
		var known []string
		for _, s := range m.specs {
			known = append(known, s.Name)
		}
		for _, name := range slices.Sorted(maps.Keys(m.names)) {
			w.r.c.known(name, known, join(v.path+"."+m.key, shown(name)), strings.TrimSuffix(m.key, "s")+
				" of the models of this stage")
		}
	}
	for _, in := range info.Inputs {
		name := renamed(v.Inputs, in.Name)
		found, known := w.source(k, name)
		w.bring(k, in.Name, name)
		switch {
		case found == nil && known:
			spec := in
			spec.Name = name
			w.missing(k, in.Name, spec)
		case found != nil && found.DType != tensor.Invalid:
			if found.DType != in.DType || !fits(found.Shape, in.Shape) {
				w.r.c.addf(w.tensorPath(k, "inputs", in.Name), "tensor %s is not what the models take as %s",
					show([]tensor.Spec{*found}), show([]tensor.Spec{in}))
			}
		}
	}
	for _, out := range info.Outputs {
		w.give(k, out.Name, out)
	}
	if info.Outputs == nil {
		for _, out := range slices.Sorted(maps.Keys(v.Outputs)) {
			w.give(k, out, tensor.Spec{Name: out})
		}
	}
	w.gives[k].known = info.Outputs != nil
}

// give puts an output into the query's name space.
func (w *wiring) give(k int, output string, spec tensor.Spec) {
	spec.Name = renamed(w.views[k].Outputs, output)
	if w.gives[k].find(spec.Name) != nil {
		w.r.c.addf(w.tensorPath(k, "outputs", output), "another output of the stage is called %q, too", spec.Name)
		return
	}
	w.gives[k].specs = append(w.gives[k].specs, spec)
}

// rows checks that a stage gives the tensors whose rows it hands on.
func (w *wiring) rows(k int) {
	n := &w.gives[k]
	for j, e := range w.views[k].Next {
		path := at(w.views[k].path+".next", j) + ".rows"
		found := n.find(e.Rows)
		switch {
		case e.Rows == "":
		case found == nil && n.known:
			var known []string
			for _, s := range n.specs {
				known = append(known, s.Name)
			}
			w.r.c.known(e.Rows, known, path, "output of this stage")
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
	}
	return all
}

// answer is the outputs of the final stages; nil when it is not known what they give.
func (w *wiring) answer() (out []tensor.Spec) {
	for k := range w.views {
		if len(w.views[k].Next) > 0 {
			continue
		}
		if !w.gives[k].known {
			return nil
		}
		for _, s := range w.gives[k].specs {
			at := slices.IndexFunc(out, func(x tensor.Spec) bool { return x.Name == s.Name })
			switch {
			case s.DType == tensor.Invalid:
				return nil
			case at >= 0:
				out[at] = s
			default:
				out = append(out, s)
			}
		}
	}
	return out
}

// fits tells whether tensors of a shape can be of the other, where -1 is any size and nil any shape.
func fits(a, b []int64) bool {
	return a == nil || b == nil || slices.EqualFunc(a, b, func(x, y int64) bool { return x == y || x == -1 || y == -1 })
}
