package config

import (
	"fmt"

	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/internal/tensor/ops"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/tensor"
)

// Resolved is a file with every name resolved: the tables that deciding code works on, and what only the code around it
// needs.
type Resolved struct {
	Spec     *serving.Spec     // validated
	Apps     []AppInfo         // by AppID
	Stages   []pipeline.Wiring // by StageID
	Variants []Binding         // by VariantID
	Backends []Backend         // by WorkerID, Address filled in
	// Accelerators names those that a worker has, by WorkerID; nil takes the next ones.
	Accelerators [][]string
	Placement    []Instance // by worker, then in the order of the file
	Cuts         []Cut      // the parts that Placement gives instances by their cores
	Proposed     bool       // nobody wrote Placement down: planners load of it what can run and fits
	Profiles     []string   // paths that can be opened
	Warnings     []string   // what works, but perhaps not as meant
}

// AppInfo is what a front end needs to know of an app.
type AppInfo struct {
	System System
	Demand float64            // queries/s that the first plan is made for; 0 when not known
	Items  workload.ItemsSpec // sizes of queries to expect
	// Inputs and Outputs are what requests and answers carry. Nil when neither the file nor the repository says: a
	// remote server may know.
	Inputs  []tensor.Spec
	Outputs []tensor.Spec
	// Batched tells whether the first dimension of the tensors counts items.
	Batched bool
	// Whole tells that each query is one item, whatever its first dimension.
	Whole bool
	// Triton is the app's model as its repository describes it: that of its only stage, or an ensemble of the app's
	// name, of which only the configuration is known. Nil when there is none.
	Triton *repository.Model
}

// Binding says which model or function stands behind a variant.
type Binding struct {
	App serving.AppID
	// Function does what the variant does, with the options With; nil for a model.
	Function *ops.Function
	With     map[string]string

	// Python is a model in Python; nil for others.
	Python *PythonModel

	Model   string // directory in the repository, or name on a remote server
	Version string // version directory in decimal; empty leaves the choice to a remote server
	Path    string // of the model file; empty when the repository has none
	// Inputs and Outputs are the model's own tensors; nil when it is not in the repository.
	Inputs  []tensor.Spec
	Outputs []tensor.Spec
	Batched bool // the first dimension is the batch; otherwise a run takes exactly one item
	// Length is what the length of a query is; nil where it is not known, or all queries have the same.
	Length *tensor.Length
	// Mask is the input that says what is padded; empty for repository.MaskName.
	Mask string
	// Rows bounds the batch dimension of a model of which each run takes one query whole (App.Whole). 0 for others, and
	// for models without a batch dimension.
	Rows int
	// Unrated says that the file does not say how accurate it is: a profile must. Until then its accuracy is 0.
	Unrated bool
	// Unsized says that the file does not say how much memory it takes; a profile may.
	Unsized bool
	// Described is the model as its repository describes it; nil when it is not there. It is shared: do not change it.
	Described *repository.Model
}

// Instance is one instance to run. Zero fields are left to the planner. It has the fields of static.Instance in
// internal/planner/static and converts to it.
type Instance struct {
	Worker   serving.WorkerID
	Stage    serving.StageID
	Variants []serving.VariantID // the first is the active one
	Slots    int
	Cores    int     // threads of a run
	Part     int32   // 1 + the device type of the part of its worker that it has; 0 when it shares all of it
	Limit    int     // items
	Share    float64 // relative weight
}

// App returns the app with the given name.
func (w *Resolved) App(name string) (serving.AppID, bool) {
	for i := range w.Spec.Apps {
		if w.Spec.Apps[i].Name == name {
			return serving.AppID(i), true
		}
	}
	return serving.None, false
}

// VariantOf returns the variant of an app with the given name.
func (w *Resolved) VariantOf(app serving.AppID, name string) (serving.VariantID, bool) {
	for i := range w.Spec.Variants {
		if w.Variants[i].App == app && w.Spec.Variants[i].Name == name {
			return serving.VariantID(i), true
		}
	}
	return serving.None, false
}

func (w *Resolved) warnf(format string, args ...any) {
	w.Warnings = append(w.Warnings, fmt.Sprintf(format, args...))
}
