package resources

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/serving"
)

// app makes an InferenceApp, or says why it cannot.
func (e *exporter) app(id serving.AppID) error {
	a, path := &e.file.Apps[id], at("apps", int(id))
	e.apps = append(e.apps, "")
	if a.Whole {
		e.lost(path+".whole", "a resource has nothing like it: the app is left out")
		return nil
	}
	name, same := e.called.give(a.Name)
	if !same {
		e.lost(path+".name", "Kubernetes takes lower-case letters, digits and dashes: clients call it %q now", name)
	}
	var all, staged []*yaml.Node // variants of the app, or its stages
	stages := e.spec.Apps[id].Stages
	for i := range stages {
		st := e.stageOf(id, i)
		variants, err := e.variants(st.file, st.id, st.path)
		if err != nil {
			return err
		}
		if st.whole == nil {
			all = variants
		} else {
			out := *st.whole
			out.Variants = nil
			staged = append(staged, object(field{"", &out}, field{"variants", variants}))
		}
		if len(variants) == 0 && (st.whole == nil || st.whole.Function == "") {
			e.lost(path, "stage %q has no variant that a resource can say: the app is left out", st.name)
			return nil
		}
	}
	e.apps[id] = name
	out := *a
	out.Variants, out.Stages, out.Inputs, out.Outputs = nil, nil, shown(a.Inputs), shown(a.Outputs)
	e.add("InferenceApp", e.meta(name), object(field{"fleet", e.how.Fleet}, field{"", &out},
		field{"variants", all}, field{"stages", staged}))
	return nil
}

// oneStage is a stage as the file and as the tables have it.
type oneStage struct {
	name, path string
	id         serving.StageID
	file       []config.Variant
	whole      *config.Stage // nil for the single stage of an app with variants
}

// stageOf returns the i-th stage of an app in the file's order.
func (e *exporter) stageOf(id serving.AppID, i int) oneStage {
	a, path := &e.file.Apps[id], at("apps", int(id))
	if len(a.Stages) == 0 {
		return oneStage{a.Name, path, e.spec.Apps[id].Stages[0], a.Variants, nil}
	}
	s := &a.Stages[i]
	for _, st := range e.spec.Apps[id].Stages {
		if e.spec.Stages[st].Name == s.Name {
			return oneStage{s.Name, at(path+".stages", i), st, s.Variants, s}
		}
	}
	return oneStage{} // names are unique in an app, and the tables have all of them
}

// variants makes those of a stage.
func (e *exporter) variants(of []config.Variant, st serving.StageID, path string) ([]*yaml.Node, error) {
	if len(of) == 0 {
		return nil, nil // a function
	}
	var out []*yaml.Node
	for j, id := range e.spec.Stages[st].Variants {
		v, p := of[j], at(path+".variants", j)
		if v.Python != "" {
			e.lost(p+".python", "a resource names a model by its files alone: export it as ONNX, or add it to the "+
				"image of a Triton")
			continue
		}
		m, why, err := e.model(id)
		if err != nil {
			return nil, err
		}
		if why != "" {
			e.lost(p+".model", "%s", why)
			continue
		}
		e.models[id] = m
		v.Accuracy = e.accuracy(id)
		out = append(out, object(field{"", &v}, field{"model", m}))
	}
	return out, nil
}

// accuracy returns what the file or a profile says; 0 where neither does.
func (e *exporter) accuracy(id serving.VariantID) float64 {
	v := &e.spec.Variants[id]
	if e.measured == nil || !e.tables.Variants[id].Unrated {
		return v.Accuracy
	}
	measured, _ := e.measured.AccuracyOf(v.Name, func(name string) (float64, bool) {
		for i := range e.spec.Variants {
			if e.spec.Variants[i].Name == name && !e.tables.Variants[i].Unrated {
				return e.spec.Variants[i].Accuracy, true
			}
		}
		return 0, false
	})
	return measured
}

// shown returns tensors with their types as a resource writes them.
func shown(list []config.Tensor) []config.Tensor {
	list = slices.Clone(list)
	for i := range list {
		list[i].DataType = strings.ToUpper(list[i].DataType)
	}
	return list
}

func at(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
