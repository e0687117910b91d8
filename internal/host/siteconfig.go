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

// Measuring returns the configuration of the measurements at a site, and a function to call with their result.
func (o *Opened) Measuring(ctx context.Context, run *Backends, s Site, file string) (profiler.Config,
	func(*profiler.File)) {
	c := o.profilerConfig(run, s, file)
	if d := &o.Spec().DeviceTypes[s.Device]; d.Part && !d.Placed {
		c.Slots = 1 // a part belongs to one instance, which runs one batch at a time
	}
	ended := func(*profiler.File) {}
	if run.onAccelerator(s.Worker) {
		ended = run.has.measured(ctx, &c)
	}
	return c, ended
}

// profilerConfig returns the configuration of the measurements at a site.
func (o *Opened) profilerConfig(run *Backends, s Site, file string) profiler.Config {
	c := profiler.Config{Spec: o.Spec(), Backend: run.Of(s.Worker), DeviceType: s.Device, Worker: s.Worker,
		Variants: s.Variants, Slots: s.slots, Cores: s.Cores,
		Tensors: func(v serving.VariantID) ([]tensor.Spec, bool, error) {
			ctx, done := context.WithTimeout(context.Background(), run.Timeout())
			defer done()
			t, err := run.Describe(ctx, v)
			return t.Inputs, t.Batched, err
		},
		ModelFile: o.modelFile,
		Unsure:    o.SeemsBatched,
		Host:      run.ThisHost(),
	}
	if o.tables.Backends[s.Worker].Kind != kindFake {
		c.RandomBatch, c.Identity = run.OwnInputs, o.FunctionIdentity
	}
	if o.tables.Backends[s.Worker].SpareProcesses > 0 && run.Python[s.Worker] != nil {
		c.Spares = run.Python[s.Worker]
	}
	if file != "" {
		device := strings.ReplaceAll(o.Spec().DeviceTypes[s.Device].Name, string(filepath.Separator), "_")
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

// FunctionIdentity returns a text of everything that the latency of a function depends on. It is empty for models,
// which are identified by their files.
func (o *Opened) FunctionIdentity(v serving.VariantID) string {
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

// ThisHost describes the machine, and the runtime if models run in this process.
func (b *Backends) ThisHost() profiler.Host {
	if b.Local == nil {
		return profiler.ThisHost("")
	}
	return profiler.ThisHost(onnx.Version())
}

// OwnInputs returns inputs to measure a function or a model with a sample with, one item each; nil for others.
func (b *Backends) OwnInputs(rng *rand.Rand, v serving.VariantID, items int) ([]dataplane.Portion, error) {
	o := b.Opened
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
