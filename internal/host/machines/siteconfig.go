package machines

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// MeasuredProfile is the file beside the sluice.yaml in which a start keeps its measurements.
const MeasuredProfile = "sluice.profile.json"

// Measuring returns the configuration of the measurements at a site, and a function to call with their result.
func (f *Fleet) Measuring(ctx context.Context, run *Backends, s Site, file string) (profiler.Config,
	func(*profiler.File)) {
	c := f.profilerConfig(run, s, file)
	if d := &f.Tables.Spec.DeviceTypes[s.Device]; d.Part && !d.Placed {
		c.Slots = 1 // a part belongs to one instance, which runs one batch at a time
	}
	ended := func(*profiler.File) {}
	if run.onAccelerator(s.Worker) {
		ended = run.has.measured(ctx, &c)
	}
	return c, ended
}

// profilerConfig returns the configuration of the measurements at a site.
func (f *Fleet) profilerConfig(run *Backends, s Site, file string) profiler.Config {
	c := profiler.Config{Spec: f.Tables.Spec, Backend: run.Of(s.Worker), DeviceType: s.Device, Worker: s.Worker,
		Variants: s.Variants, Slots: s.slots, Cores: s.Cores,
		Tensors: func(v serving.VariantID) ([]tensor.Spec, bool, error) {
			ctx, done := context.WithTimeout(context.Background(), run.Timeout())
			defer done()
			t, err := run.Describe(ctx, v)
			return t.Inputs, t.Batched, err
		},
		Length:    func(v serving.VariantID) *tensor.Length { return f.Tables.Variants[v].Length },
		ModelFile: f.modelFile,
		Unsure:    f.SeemsBatched,
		Host:      run.ThisHost(),
	}
	if f.Tables.Backends[s.Worker].Kind != KindFake {
		c.RandomBatch, c.Identity = run.OwnInputs, f.FunctionIdentity
	}
	if f.Tables.Backends[s.Worker].SpareProcesses > 0 && run.Python[s.Worker] != nil {
		c.Spares = run.Python[s.Worker]
	}
	if file != "" {
		device := strings.ReplaceAll(f.Tables.Spec.DeviceTypes[s.Device].Name, string(filepath.Separator), "_")
		c.Partial = fmt.Sprintf("%s.%s.partial", file, device)
	}
	return c
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
	f := b.Fleet
	own := f.Tables.Variants[v].Function
	if own == nil {
		if parts, err := b.pythonSample(v, items); err != nil || parts != nil {
			return parts, err
		}
		return f.sampleInputs(v, items), nil
	}
	parts := make([]dataplane.Portion, items)
	for k := range parts {
		inputs, err := own.Sample(rng, f.Tables.Stages[f.Tables.Spec.Variants[v].Stage].Inputs, 1)
		if err != nil {
			return nil, err
		}
		parts[k] = dataplane.Portion{Query: serving.QueryID(k + 1), Items: 1, Inputs: inputs}
	}
	return parts, nil
}

// sampleInputs returns inputs that are given with a model, to measure it with; nil for a model without them.
func (f *Fleet) sampleInputs(v serving.VariantID, items int) []dataplane.Portion {
	m := f.Tables.Variants[v].Described
	if m == nil || m.Sample == nil && m.Found == nil || m.MaxBatch == 0 && items > 1 {
		return nil
	}
	parts := make([]dataplane.Portion, items)
	for k := range parts {
		parts[k] = dataplane.Portion{Query: serving.QueryID(k + 1), Items: 1, Inputs: m.Trial(1)}
	}
	return parts
}
