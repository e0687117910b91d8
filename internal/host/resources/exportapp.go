package resources

import (
	"fmt"
	"strings"
	"time"

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
	out := &inferenceApp{
		Fleet: e.how.Fleet,
		Objective: objective{Latency: time.Duration(a.SLO.Latency).String(),
			Percentile: quantity(a.SLO.Percentile)},
		AccuracyTarget: given(a.AccuracyTarget), AccuracyFloor: given(a.AccuracyFloor), Late: a.Late,
		MinInstances: a.MinInstances, MaxInstances: a.MaxInstances,
		Demand: given(a.Demand), Inputs: shown(a.Inputs), Outputs: shown(a.Outputs),
	}
	if a.Weight != 1 {
		out.Weight = quantity(a.Weight)
	}
	stages := e.spec.Apps[id].Stages
	for i := range stages {
		st := e.stageOf(id, i)
		variants, err := e.variants(st.file, st.id, st.path)
		if err != nil {
			return err
		}
		if st.whole == nil {
			out.Variants = variants
		} else {
			out.Stages = append(out.Stages, stageOf(st.whole, variants))
		}
		if len(variants) == 0 && (st.whole == nil || st.whole.Function == "") {
			e.lost(path, "stage %q has no variant that a resource can say: the app is left out", st.name)
			return nil
		}
	}
	e.apps[id] = name
	e.add("InferenceApp", e.meta(name), out)
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

func stageOf(s *config.Stage, variants []variant) stage {
	out := stage{Name: s.Name, Variants: variants, Function: s.Function, With: s.With, Stateful: s.Stateful,
		Inputs: s.Inputs, Outputs: s.Outputs}
	for _, n := range s.Next {
		x := edge{To: n.To, Rows: n.Rows}
		if n.FanOut != 1 {
			x.FanOut = quantity(n.FanOut)
		}
		out.Next = append(out.Next, x)
	}
	return out
}

// variants makes those of a stage.
func (e *exporter) variants(of []config.Variant, st serving.StageID, path string) ([]variant, error) {
	if len(of) == 0 {
		return nil, nil // a function
	}
	var out []variant
	for j, id := range e.spec.Stages[st].Variants {
		v, p := &of[j], at(path+".variants", j)
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
		accuracy := e.accuracy(id)
		out = append(out, variant{Name: v.Name, Model: m, Accuracy: given(accuracy), MaxBatch: v.MaxBatch,
			Memory: memory(int64(v.Memory))})
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

func shown(list []config.Tensor) (out []tensor) {
	for _, t := range list {
		out = append(out, tensor{t.Name, strings.ToUpper(t.DataType), t.Shape})
	}
	return out
}

func at(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
