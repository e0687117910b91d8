package config

import (
	"errors"
	"slices"

	"github.com/sluice-serving/sluice/internal/tensor/ops"
)

// runsModels reports whether any stage has a model of the repository.
func (f *File) runsModels() bool {
	for i := range f.Apps {
		for _, s := range f.stages(&f.Apps[i], "") {
			if s.Function == "" && slices.ContainsFunc(s.Variants, func(v Variant) bool { return v.Python == "" }) {
				return true
			}
		}
	}
	return false
}

// stage checks a stage apart from its variants and edges. given is the stage as in the file. onlyStage is set when the
// app has no other.
func (c *checker) stage(s *stageView, given *Stage, onlyStage bool) {
	switch {
	case s.Function != "" && len(given.Variants) > 0:
		c.addf(s.path+".function", "give either variants, models that can do this stage, or a function")
	case s.Function != "":
		c.builtin(s)
	case len(s.Variants) == 0:
		c.addf(s.path+".variants", "is missing: list the models that can do this stage, or name a function")
	default:
		c.need(len(s.With) == 0, s.path+".with", "belongs to functions: there is none here")
		inPython := !slices.ContainsFunc(s.Variants, func(v Variant) bool { return v.Python == "" })
		c.need(!s.Stateful || inPython || !c.inProcess(), s.path+".stateful",
			"is true, but models that run in this process keep nothing: only the functions track and window "+
				"and Python do")
	}
	for _, m := range []struct {
		key   string
		names map[string]string
	}{{"inputs", s.Inputs}, {"outputs", s.Outputs}} {
		c.need(len(m.names) == 0 || !onlyStage, s.path+"."+m.key,
			"renames tensors between stages, and the app has only one")
		for name, to := range m.names {
			c.need(to != "" && len(to) <= 200, join(s.path+"."+m.key, shown(name)),
				"is %.40q, want the name of a tensor", to)
		}
	}
}

// inProcess reports whether every model runs in this process.
func (c *checker) inProcess() bool {
	return !slices.ContainsFunc(c.f.Workers, func(w Worker) bool { return w.Backend.Kind != "onnx" })
}

// builtin checks a function's name, options and tensors. As models, files of options are looked for by Resolve.
func (c *checker) builtin(s *stageView) {
	if !c.known(s.Function, ops.Names(), s.path+".function", "function") {
		return
	}
	if !fromFiles(s.With) {
		c.options(s)
	}
}

// options checks a known function's options and tensors.
func (c *checker) options(s *stageView) {
	f, err := ops.New(s.Function, s.With)
	var wrong ops.OptionErrors
	if errors.As(err, &wrong) {
		for _, x := range wrong {
			var known []string
			for _, o := range ops.Options(s.Function) {
				known = append(known, o.Name)
			}
			hint := ""
			if !slices.Contains(known, x.Option) {
				hint, _ = didYouMean(x.Option, known)
			}
			c.addf(join(s.path+".with", shown(x.Option)), "%s%s", x.Text, hint)
		}
	}
	c.need(s.Stateful == ops.Stateful(s.Function), s.path+".stateful", "is %v, but function %s %s", s.Stateful,
		s.Function,
		map[bool]string{true: "keeps something from query to query of a stream", false: "keeps nothing"}[!s.Stateful])
	if f == nil {
		return
	}
	for name := range s.Inputs {
		c.known(name, portNames(f.Inputs()), join(s.path+".inputs", shown(name)), "input of function "+s.Function)
	}
	for name := range s.Outputs {
		c.known(name, portNames(f.Outputs()), join(s.path+".outputs", shown(name)), "output of function "+s.Function)
	}
}

func portNames(ports []ops.Port) []string {
	out := make([]string, len(ports))
	for i := range ports {
		out[i] = ports[i].Name
	}
	return out
}
