package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
	"github.com/sluice-serving/sluice/tensor/ops"
)

// wiring determines which tensors reach the stages of an app, and what is known of them. A stage sees the tensors of
// the request and those of the stages on the paths to it. Of several with one name it takes the latest in topological
// order.
type wiring struct {
	r     *resolver
	file  *App
	app   *serving.App
	path  string
	views []stageView // in topological order, as app.Stages

	listed    bool           // the file lists the request's tensors
	requested []tensor.Spec  // tensors of requests; nil when unknown
	unknown   bool           // the first stage's inputs are unknown
	asked     []requestInput // inputs that no stage gives: requests must have them
	taken     []requestInput // all inputs that stages take from the request
	outputs   []namespace    // by stage
	ancestors [][]int        // by stage: the stages on the paths to it, ascending
}

// namespace holds the tensors that a stage gives, by their names in the query.
type namespace struct {
	known bool // specs is complete
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
	w.listed = w.requested != nil
	w.ancestors, w.outputs = make([][]int, len(w.views)), make([]namespace, len(w.views))
	for k, st := range w.app.Stages {
		for _, e := range s.Stages[st].Next {
			to := slices.Index(w.app.Stages, e.To)
			for _, x := range append(w.ancestors[k], k) {
				if !slices.Contains(w.ancestors[to], x) {
					w.ancestors[to] = append(w.ancestors[to], x)
				}
			}
		}
	}
	for k, st := range w.app.Stages {
		slices.Sort(w.ancestors[k])
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
	w.reportDoubtful()
}

// lookUp returns the tensor that a stage sees under a name, or nil. sure is false when a stage with unknown outputs may
// give it.
func (w *wiring) lookUp(k int, name string) (found *tensor.Spec, sure bool) {
	for i := len(w.ancestors[k]) - 1; i >= 0; i-- {
		n := &w.outputs[w.ancestors[k][i]]
		if found = n.find(name); found != nil || !n.known {
			return found, found != nil && found.DType != tensor.Invalid
		}
	}
	n := namespace{specs: w.requested}
	return n.find(name), true
}

// noteTaken records an input that a stage takes from the request, if it does.
func (w *wiring) noteTaken(k int, input, name string) {
	for _, b := range w.ancestors[k] {
		if w.outputs[b].find(name) != nil || !w.outputs[b].known {
			return
		}
	}
	w.taken = append(w.taken, requestInput{k, input, name})
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
	for _, b := range w.ancestors[k] {
		add(w.outputs[b].specs)
	}
	return out
}

// missing handles an input that no stage is known to give. Requests must have it. If the file lists the request's
// tensors, it is a problem.
func (w *wiring) missing(k int, input string, spec tensor.Spec) {
	at := w.tensorPath(k, "inputs", input)
	switch {
	case w.listed:
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
		w.asked = append(w.asked, requestInput{k, input, spec.Name})
	}
}

// requestInput is an input of a stage that only a request can provide.
type requestInput struct {
	stage       int
	input, name string
}

// reportDoubtful reports tensors that a later stage takes from the request although a stage may be meant to give them.
func (w *wiring) reportDoubtful() {
	for _, a := range w.asked {
		if a.stage == 0 {
			continue
		}
		from := slices.IndexFunc(w.outputs, func(n namespace) bool { return n.find(a.name) != nil })
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

// tensorPath returns the path of an entry of a stage's inputs or outputs, or of the stage when the file has no such
// entry.
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

// function wires the stage of a built-in function. It takes an optional input when the file names it or an earlier
// stage gives it.
func (w *wiring) function(k int, f *ops.Function, info *StageInfo) {
	v := &w.views[k]
	sure := true
	for _, p := range f.Inputs() {
		name := renamed(v.Inputs, p.Name)
		found, known := w.lookUp(k, name)
		if p.Optional && found == nil && v.Inputs[p.Name] == "" {
			continue
		}
		w.noteTaken(k, p.Name, name)
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
		if spec.DType == tensor.Invalid { // a type for measuring; the real one is known only at run time
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
	for _, p := range f.Outputs() { // their names are always known
		spec := tensor.Spec{Name: p.Name}
		if at := slices.IndexFunc(info.Outputs, func(s tensor.Spec) bool { return s.Name == p.Name }); at >= 0 {
			spec = info.Outputs[at]
		}
		w.addOutput(k, p.Name, spec)
	}
	w.outputs[k].known = true
}

// model wires a stage of models.
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
		found, known := w.lookUp(k, name)
		w.noteTaken(k, in.Name, name)
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
		w.addOutput(k, out.Name, out)
	}
	if info.Outputs == nil {
		for _, out := range slices.Sorted(maps.Keys(v.Outputs)) {
			w.addOutput(k, out, tensor.Spec{Name: out})
		}
	}
	w.outputs[k].known = info.Outputs != nil
}

// addOutput adds an output to the query's names.
func (w *wiring) addOutput(k int, output string, spec tensor.Spec) {
	spec.Name = renamed(w.views[k].Outputs, output)
	if w.outputs[k].find(spec.Name) != nil {
		w.r.c.addf(w.tensorPath(k, "outputs", output), "another output of the stage is called %q, too", spec.Name)
		return
	}
	w.outputs[k].specs = append(w.outputs[k].specs, spec)
}

// rows checks that a stage gives the tensors whose rows it sends on.
func (w *wiring) rows(k int) {
	n := &w.outputs[k]
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

// batched reports whether the first dimension of all of a request's tensors counts items. It does not when a request
// has one image and several boxes in it, for instance.
func (w *wiring) batched() bool {
	first := func(name string) bool {
		return slices.ContainsFunc(w.taken, func(a requestInput) bool { return a.stage == 0 && a.name == name })
	}
	all := true
	for k, st := range w.app.Stages {
		beside := slices.ContainsFunc(w.taken, func(a requestInput) bool { return a.stage == k && !first(a.name) })
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

// answer returns the outputs of the final stages; nil when they are unknown.
func (w *wiring) answer() (out []tensor.Spec) {
	for k := range w.views {
		if len(w.views[k].Next) > 0 {
			continue
		}
		if !w.outputs[k].known {
			return nil
		}
		for _, s := range w.outputs[k].specs {
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

// fits reports whether tensors of one shape can have the other. -1 is any size and nil any shape.
func fits(a, b []int64) bool {
	return a == nil || b == nil || slices.EqualFunc(a, b, func(x, y int64) bool { return x == y || x == -1 || y == -1 })
}
