package config

import (
	"fmt"

	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
	"github.com/sluice-serving/sluice/tensor/ops"
)

// World is a file with every name resolved: the tables of deciding code, and beside them those of the code around it.
type World struct {
	Spec      *serving.Spec // validated
	Apps      []AppInfo     // by AppID
	Stages    []StageInfo   // by StageID
	Variants  []Binding     // by VariantID
	Backends  []Backend     // by WorkerID, Address filled in
	Placement []Instance    // by worker, then in the order of the file
	Profiles  []string      // paths that can be opened
	Warnings  []string      // settings that work, but perhaps not as intended
}

// AppInfo describes an app for front ends.
type AppInfo struct {
	System System
	Demand float64            // queries/s that the first plan is made for; 0 when not known
	Items  workload.ItemsSpec // sizes of queries to expect
	// Inputs and Outputs are the tensors of requests and answers. Nil when neither the file nor the repository says: a
	// remote server may know.
	Inputs  []tensor.Spec
	Outputs []tensor.Spec
	// Batched is set when the first dimension of the tensors counts items.
	Batched bool
}

// StageInfo describes the tensors of a stage.
type StageInfo struct {
	// Takes maps inputs of the stage's model or function to tensors of the query; Gives maps outputs to names of the
	// query. Missing ones have the same name in both.
	Takes, Gives map[string]string
	// Inputs and Outputs are the stage's tensors by its own names; nil when unknown.
	Inputs, Outputs []tensor.Spec
}

// Binding is the model or function of a variant.
type Binding struct {
	App serving.AppID
	// Function runs the variant, with the options With; nil for a model.
	Function *ops.Function
	With     map[string]string

	Model   string // directory in the repository, or name on a remote server
	Version string // version directory in decimal; empty leaves the choice to a remote server
	Path    string // of the model file; empty when the repository has none
	// Inputs and Outputs are the model's own tensors; nil when it is not in the repository.
	Inputs  []tensor.Spec
	Outputs []tensor.Spec
	Batched bool // the first dimension is the batch; otherwise a run takes exactly one item
}

// Instance is one instance to run. The planner sets fields that are zero. It has the fields of static.Instance in
// planner/static and converts to it.
type Instance struct {
	Worker   serving.WorkerID
	Stage    serving.StageID
	Variants []serving.VariantID // the first is the active one
	Slots    int
	Cores    int
	Limit    int     // items
	Share    float64 // relative weight
}

// App returns the app with the given name.
func (w *World) App(name string) (serving.AppID, bool) {
	for i := range w.Spec.Apps {
		if w.Spec.Apps[i].Name == name {
			return serving.AppID(i), true
		}
	}
	return serving.None, false
}

// VariantOf returns the variant of an app with the given name.
func (w *World) VariantOf(app serving.AppID, name string) (serving.VariantID, bool) {
	for i := range w.Spec.Variants {
		if w.Variants[i].App == app && w.Spec.Variants[i].Name == name {
			return serving.VariantID(i), true
		}
	}
	return serving.None, false
}

func (w *World) warnf(format string, args ...any) {
	w.Warnings = append(w.Warnings, fmt.Sprintf(format, args...))
}
