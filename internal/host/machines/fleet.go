package machines

import (
	"fmt"
	"os"
	"slices"

	"github.com/sluice-serving/sluice/internal/api/listen"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/provider"
	"github.com/sluice-serving/sluice/internal/tensor/ops"
	"github.com/sluice-serving/sluice/serving"
)

// Fleet is what a configuration says of its workers and of what they run. It is shared: do not change it.
type Fleet struct {
	File    *config.File
	Tables  *config.Resolved
	Written bool // the planner places the instances that the file lists
	// Notice is told what the user is to know.
	Notice func(sentence string)
	// Where says where a worker that is a `sluice node` gets a model that its repository lacks, and its SHA-256.
	Where func(model string) (uri, digest string)
	Net   listen.Net // that leads to them
	// Supply supplies the machines of workers of kind `supplied`; nil takes those that a worker's command starts.
	Supply provider.Supply
}

// RunsHere reports whether a worker runs models in this process.
func (f *Fleet) RunsHere(w serving.WorkerID) bool {
	kind := f.Tables.Backends[w].Kind
	return kind != KindFake && kind != kindRemote && kind != kindSupplied
}

// runsPython reports whether models in Python run here, beside a worker's own models.
func (f *Fleet) runsPython(b config.Backend) bool {
	return b.Kind != KindFake && b.Kind != kindSupplied
}

// onlyFunctions reports whether no model of the repository runs, and none can come to run: all variants are functions
// or models in Python.
func (f *Fleet) onlyFunctions() bool {
	n := len(f.Functions())
	for v := range f.Tables.Variants {
		if f.Tables.Variants[v].Python != nil {
			n++
		}
	}
	return n > 0 && n == len(f.Tables.Variants) && f.File.Store == "" && !f.File.Models.Changes()
}

// Functions are the variants that are functions, not models.
func (f *Fleet) Functions() map[serving.VariantID]*ops.Function {
	out := make(map[serving.VariantID]*ops.Function)
	for v := range f.Tables.Variants {
		if f := f.Tables.Variants[v].Function; f != nil {
			out[serving.VariantID(v)] = f
		}
	}
	return out
}

// RunsModels reports whether some worker is not fake.
func (f *Fleet) RunsModels() bool {
	return slices.ContainsFunc(f.Tables.Backends, func(b config.Backend) bool { return b.Kind != KindFake })
}

// HasCatalog reports whether models can come and go in a running server: all run in this process, from a repository.
func (f *Fleet) HasCatalog() bool {
	return f.File.Models.Repository != "" && !slices.ContainsFunc(f.Tables.Backends,
		func(b config.Backend) bool { return b.Kind != kindONNX })
}

// usesPython reports whether a variant is a model in Python, or one can come to be.
func (f *Fleet) usesPython() bool {
	return slices.ContainsFunc(f.Tables.Variants, func(b config.Binding) bool { return b.Python != nil }) ||
		f.TakesPython()
}

// TakesPython reports whether models in Python can be deployed: a worker is for them.
func (f *Fleet) TakesPython() bool {
	return f.File.Store != "" && slices.ContainsFunc(f.Tables.Backends, func(b config.Backend) bool {
		return b.Kind == kindPython
	})
}

// modelFile is the file on whose content the latency of a variant depends; empty for functions and folders.
func (f *Fleet) modelFile(v serving.VariantID) string {
	b := &f.Tables.Variants[v]
	if b.Python == nil {
		return b.Path
	}
	if st, err := os.Stat(b.Python.Path); err != nil || st.IsDir() {
		return ""
	}
	return b.Python.Path
}

// FunctionIdentity returns a text of everything that the latency of a function depends on. It is empty for models,
// which are identified by their files.
func (f *Fleet) FunctionIdentity(v serving.VariantID) string {
	if p := f.Tables.Variants[v].Python; p != nil {
		return fmt.Sprintf("python %s %v", p.Class, p.Options)
	}
	own := f.Tables.Variants[v].Function
	if own == nil {
		return ""
	}
	return fmt.Sprintf("%s %v %v", own.Name(), f.Tables.Variants[v].With,
		f.Tables.Stages[f.Tables.Spec.Variants[v].Stage].Inputs)
}

// SeemsBatched reports whether shapes alone say that the model of a variant batches.
func (f *Fleet) SeemsBatched(v serving.VariantID) bool {
	b := &f.Tables.Variants[v]
	return b.Batched && b.Described != nil && b.Described.Config.MaxBatchSize == nil && b.Path != ""
}
