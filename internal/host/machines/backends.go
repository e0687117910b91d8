package machines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/provider/process"
	"github.com/sluice-serving/sluice/internal/provider/supplied"
	"github.com/sluice-serving/sluice/internal/runtime/builtin"
	"github.com/sluice-serving/sluice/internal/runtime/fake"
	"github.com/sluice-serving/sluice/internal/runtime/native"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
	"github.com/sluice-serving/sluice/internal/runtime/openinference"
	"github.com/sluice-serving/sluice/internal/runtime/python"
	"github.com/sluice-serving/sluice/serving"
)

// Kinds of workers.backend in a file.
const (
	kindONNX     = "onnx"
	KindFake     = "fake"
	kindRemote   = "openinference"
	kindSupplied = "supplied"
	kindPython   = "python"
)

// Backends run the models and functions of every worker.
type Backends struct {
	Fleet   *Fleet
	models  []dataplane.Backend             // by WorkerID; nil for a worker without models
	workers []dataplane.Backend             // by WorkerID: the same, and functions on workers that run them
	absent  map[*openinference.Backend]bool // servers that did not say how their models answer
	Local   *onnx.Backend                   // nil when no worker runs models in this process
	has     *accelerators
	Python  []*python.Backend // by WorkerID: models in Python; nil for a fake worker
	// functions are the variants that are functions, of all workers. Nil when there are none and none can come.
	Functions *builtin.Functions
	Sent      *openinference.Sent // models that other servers get from here with their loads
	Supplied  []*supplied.Backend // by WorkerID; nil for a worker whose machine is there
	News      *machineNews        // of supplied machines; nil without any
	Processes *process.Supply     // machines that are started here; nil without any
}

// Of is what runs the instances of a worker.
func (b *Backends) Of(id serving.WorkerID) dataplane.Backend { return b.workers[id] }

// Over has a function put something over what runs the instances of each worker. It is called before anything runs.
func (b *Backends) Over(f func(serving.WorkerID, dataplane.Backend) dataplane.Backend) {
	for w := range b.workers {
		b.workers[w] = f(serving.WorkerID(w), b.workers[w])
	}
}

// Unbind forgets what runs as a variant. Instances that run keep it.
func (b *Backends) Unbind(v serving.VariantID) {
	b.Sent.Unbind(v)
	if b.Local != nil {
		b.Local.Unbind(v)
	}
	for _, p := range b.Python {
		if p != nil {
			p.Unbind(v)
		}
	}
	if b.Functions != nil {
		b.Functions.Unbind(v)
	}
}

// Backends makes the backends of the file. They connect and load nothing yet. log takes what goes wrong and what models
// in Python print; nil has the latter shown as notices.
func (f *Fleet) Backends(log *slog.Logger) (*Backends, error) {
	kinds := f.Tables.Backends
	if len(kinds) != len(f.Tables.Spec.Workers) {
		return nil, fmt.Errorf("this fleet has %d workers, %s describes %d: it can be planned for, not run",
			len(f.Tables.Spec.Workers), f.File.Name(), len(kinds))
	}
	has, err := f.accelerators(context.Background())
	if err != nil {
		return nil, err
	}
	out := &Backends{Fleet: f, models: make([]dataplane.Backend, len(kinds)), has: has, Sent: &openinference.Sent{}}
	out.Python = make([]*python.Backend, len(kinds))
	if own := f.Functions(); len(own) > 0 || f.File.Models.Repository != "" {
		out.Functions = builtin.NewFunctions(own)
	}
	for at, b := range kinds {
		var err error
		switch {
		case b.Kind == KindFake:
			out.models[at], err = f.fake(b)
		case b.Kind == kindRemote:
			out.models[at], err = out.remote(b, log)
		case b.Kind == kindSupplied:
			if err = out.supply(serving.WorkerID(at), log); err == nil {
				out.models[at] = out.Supplied[at]
			}
		case b.Kind == kindPython, f.onlyFunctions():
			// No model of the repository runs here, so no runtime is needed.
		default:
			if out.Local == nil {
				if out.Local, err = f.onnx(has, f.teller(log)); err == nil {
					err = f.checkProviders(out.Local, f.teller(log))
				}
			}
			out.models[at] = out.Local
		}
		if err != nil {
			return nil, err
		}
		worker := out.models[at]
		if f.runsPython(b) && f.usesPython() {
			out.Python[at] = f.pythonOf(b, has, log)
			worker = python.Over(out.Python[at], worker)
			if has != nil && has.why != nil && f.wants(serving.WorkerID(at)) {
				f.teller(log)(fmt.Errorf("worker %q runs its models in Python without an accelerator: %w",
					f.Tables.Spec.Workers[at].Name, has.why))
			}
		}
		if out.Functions != nil && b.Kind != KindFake { // a fake worker has no tensors for functions
			worker = builtin.New(out.Functions, worker)
		}
		out.workers = append(out.workers, worker)
	}
	return out, nil
}

// teller returns what warnings go to: a server's log, else the user.
func (f *Fleet) teller(log *slog.Logger) func(error) {
	if log != nil {
		return func(err error) { log.Warn("trouble", "error", err) }
	}
	return func(err error) { f.Notice(err.Error()) }
}

// ONNXBackend runs models in this process, for a question about it.
func (f *Fleet) ONNXBackend(ctx context.Context) (*onnx.Backend, error) {
	has, err := f.accelerators(ctx)
	if err != nil {
		return nil, err
	}
	return f.onnx(has, nil)
}

// outputShare is the part of the memory that requests may hold which the outputs of one batch take at most: one in so
// many. The runtime holds as much again and more while it computes them, and several batches run at once.
const outputShare = 4

// onnx runs models in this process.
func (f *Fleet) onnx(has *accelerators, tell func(error)) (*onnx.Backend, error) {
	models := make(map[serving.VariantID]onnx.Model)
	for v, b := range f.Tables.Variants {
		if b.Path != "" {
			models[serving.VariantID(v)] = ONNXModel(&f.Tables.Variants[v])
		}
	}
	b, err := onnx.New(onnx.Config{Models: models, Device: f.onnxDevice(has), Memory: RequestMemory(0) / outputShare,
		Tell: tell})
	if errors.Is(err, native.ErrMissing) {
		return nil, fault.Wrap(fault.Missing, err)
	}
	return b, err
}

// LogLibrary logs which library runs models in this process, if one does.
func LogLibrary(log *slog.Logger) {
	if l := onnx.Library(); l.Path != "" {
		log.Info("ONNX Runtime", "version", onnx.Version(), "library", l.Path, "found", l.Found)
	}
}

// ONNXModel returns the file of a variant with what its repository says of it.
func ONNXModel(b *config.Binding) onnx.Model {
	if b.Described == nil {
		return onnx.Model{Path: b.Path, NoBatch: !b.Batched}
	}
	m := onnx.Described(b.Path, b.Described)
	m.Rows, m.Mask = b.Rows, b.Mask
	return m
}

// fake makes a worker that waits as its settings say. Its outputs have as many rows as the stages expect.
func (f *Fleet) fake(b config.Backend) (dataplane.Backend, error) {
	finds := make(map[serving.VariantID][]fake.RowOutput)
	for _, st := range f.Tables.Spec.Stages {
		for _, e := range st.Next {
			for _, v := range st.Variants {
				if e.Rows != "" {
					finds[v] = append(finds[v], fake.RowOutput{Name: e.Rows, PerItem: e.FanOut})
				}
			}
		}
	}
	return fake.New(fake.Config{
		Latency: func(_ serving.VariantID, items int) time.Duration {
			return time.Duration(b.Latency) + time.Duration(items)*time.Duration(b.LatencyPerItem)
		},
		Load:      func(serving.VariantID) time.Duration { return time.Duration(b.LoadTime) },
		MostItems: func(serving.VariantID) int { return b.MostItems },
		ErrorRate: b.ErrorRate, Seed: uint64(b.Seed), RowOutputs: finds,
	})
}

// remote makes a backend for a server that speaks the Open Inference Protocol.
func (b *Backends) remote(c config.Backend, log *slog.Logger) (*openinference.Backend, error) {
	f := b.Fleet
	trouble := func(error) {}
	if log != nil {
		trouble = func(err error) { log.Warn("trouble", "error", err) }
	}
	models := make(map[serving.VariantID]openinference.Model)
	for v, x := range f.Tables.Variants {
		uri, digest := f.Where(x.Model)
		outputs := f.Tables.Stages[f.Tables.Spec.Variants[v].Stage].Outputs
		if len(f.Tables.Spec.Apps[x.App].Stages) == 1 {
			outputs = f.Tables.Apps[x.App].Outputs
		}
		models[serving.VariantID(v)] = openinference.Model{
			Name: x.Model, Version: x.Version, URI: uri, Digest: digest, Outputs: outputs,
			Whole: x.Rows > 0, Batched: x.Batched && f.Tables.Spec.Variants[v].MaxBatch > 1,
		}
	}
	return openinference.New(openinference.Config{
		Address: c.Address, TLS: c.TLS, CA: c.CA, V1: c.Protocol == "v1", LoadModels: c.LoadModels, Models: models,
		Sent: b.Sent, Trouble: trouble, Dial: f.Net.Dialer,
	})
}
