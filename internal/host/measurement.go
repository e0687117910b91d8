package host

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// measuring returns the configuration of the measurements at a site, and a function to call with their result.
func (o *Opened) measuring(ctx context.Context, run *backends, s site, file string) (profiler.Config,
	func(*profiler.File)) {
	c := o.profilerConfig(run, s, file)
	if d := &o.Spec().DeviceTypes[s.device]; d.Part && !d.Placed {
		c.Slots = 1 // a part belongs to one instance, which runs one batch at a time
	}
	ended := func(*profiler.File) {}
	if run.onAccelerator(s.worker) {
		ended = run.has.measured(ctx, &c)
	}
	return c, ended
}

// profilerConfig returns the configuration of the measurements at a site.
func (o *Opened) profilerConfig(run *backends, s site, file string) profiler.Config {
	c := profiler.Config{Spec: o.Spec(), Backend: run.of(s.worker), DeviceType: s.device, Worker: s.worker,
		Variants: s.variants, Slots: s.slots, Cores: s.cores,
		Tensors: func(v serving.VariantID) ([]tensor.Spec, bool, error) {
			ctx, done := context.WithTimeout(context.Background(), run.timeout())
			defer done()
			t, err := run.describe(ctx, v)
			return t.inputs, t.batched, err
		},
		ModelFile: o.modelFile,
		Unsure:    o.seemsBatched,
		Host:      run.thisHost(),
	}
	if o.tables.Backends[s.worker].Kind != kindFake {
		c.RandomBatch, c.Identity = run.ownInputs, o.functionIdentity
	}
	if o.tables.Backends[s.worker].SpareProcesses > 0 && run.python[s.worker] != nil {
		c.Spares = run.python[s.worker]
	}
	if file != "" {
		device := strings.ReplaceAll(o.Spec().DeviceTypes[s.device].Name, string(filepath.Separator), "_")
		c.Partial = fmt.Sprintf("%s.%s.partial", file, device)
	}
	return c
}

// modelFile is the file on whose content the latency of a variant depends; empty for functions and folders.
func (o *Opened) modelFile(v serving.VariantID) string {
	b := &o.tables.Variants[v]
	if b.Python == nil {
		return b.Path
	}
	if st, err := os.Stat(b.Python.Path); err != nil || st.IsDir() {
		return ""
	}
	return b.Python.Path
}

// functionIdentity returns a text of everything that the latency of a function depends on. It is empty for models,
// which are identified by their files.
func (o *Opened) functionIdentity(v serving.VariantID) string {
	if p := o.tables.Variants[v].Python; p != nil {
		return fmt.Sprintf("python %s %v", p.Class, p.Options)
	}
	f := o.tables.Variants[v].Function
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%s %v %v", f.Name(), o.tables.Variants[v].With,
		o.tables.Stages[o.Spec().Variants[v].Stage].Inputs)
}

// thisHost describes the machine, and the runtime if models run in this process.
func (b *backends) thisHost() profiler.Host {
	if b.local == nil {
		return profiler.ThisHost("")
	}
	return profiler.ThisHost(onnx.Version())
}

// ownInputs returns inputs to measure a function or a model with a sample with, one item each; nil for others.
func (b *backends) ownInputs(rng *rand.Rand, v serving.VariantID, items int) ([]dataplane.Portion, error) {
	o := b.opened
	f := o.tables.Variants[v].Function
	if f == nil {
		if parts, err := b.pythonSample(v, items); err != nil || parts != nil {
			return parts, err
		}
		return o.sampleInputs(v, items), nil
	}
	parts := make([]dataplane.Portion, items)
	for k := range parts {
		inputs, err := f.Sample(rng, o.tables.Stages[o.Spec().Variants[v].Stage].Inputs, 1)
		if err != nil {
			return nil, err
		}
		parts[k] = dataplane.Portion{Query: serving.QueryID(k + 1), Items: 1, Inputs: inputs}
	}
	return parts, nil
}
