package machines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"path/filepath"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/runtime/python"
	"github.com/sluice-serving/sluice/serving"
)

// PythonPlatform is Triton's name for the platform of models in Python.
const PythonPlatform = "python"

// pythonOf runs the models in Python of a worker. log is that of backends.
func (f *Fleet) pythonOf(b config.Backend, has *accelerators, log *slog.Logger) *python.Backend {
	c := python.Config{
		Interpreter: b.Interpreter, Environment: b.Environment, Processes: b.Processes, Memory: int64(b.ProcessMemory),
		RunTimeout: time.Duration(b.RunTimeout), ForInstance: has.environment, Spares: b.SpareProcesses,
		Models: make(map[serving.VariantID]python.Model),
		Log:    func(model, line string) { f.Notice(fmt.Sprintf("model %q: %s", model, line)) },
	}
	if log != nil {
		c.Log = func(model, line string) { log.Info("python", "model", model, "output", line) }
	}
	if b.VirtualEnvironment != "" {
		c.Interpreter = python.VirtualEnvironment(f.File.Path(b.VirtualEnvironment))
	}
	spec := f.Tables.Spec
	for v := range f.Tables.Variants {
		x := &f.Tables.Variants[v]
		if x.Python == nil {
			continue
		}
		m := python.Model{Name: spec.Variants[v].Name, Source: x.Python.Source(), Options: x.Python.Options}
		if app := &spec.Apps[x.App]; len(app.Stages) == 1 {
			m.Inputs, m.Outputs = f.Tables.Apps[x.App].Inputs, f.Tables.Apps[x.App].Outputs
		}
		c.Models[serving.VariantID(v)] = m
	}
	return python.New(c)
}

// inPython returns the backend that describes a variant in Python; nil for other variants.
func (b *Backends) inPython(v serving.VariantID) *python.Backend {
	for _, p := range b.Python {
		if p != nil && p.Has(v) {
			return p
		}
	}
	return nil
}

// askPython returns the inputs and outputs of a model in Python, which it loads for a short time at the first call.
func (b *Backends) askPython(ctx context.Context, p *python.Backend, v serving.VariantID) (Tensors, error) {
	i, err := p.Interface(ctx, v)
	if err == nil && i.Inputs == nil {
		err = fmt.Errorf("the model in Python %q does not say what its inputs are: give it an attribute inputs, or "+
			"list them under apps[].inputs", b.Fleet.Tables.Spec.Variants[v].Name)
	}
	return Tensors{i.Inputs, i.Outputs, i.Batched}, err
}

// pythonSample returns what a model in Python gives to measure it with, as one query for each item; nil where it gives
// nothing.
func (b *Backends) pythonSample(v serving.VariantID, items int) ([]dataplane.Portion, error) {
	p := b.inPython(v)
	if p == nil {
		return nil, nil
	}
	ctx, done := context.WithTimeout(context.Background(), pythonTimeout)
	defer done()
	i, err := p.Interface(ctx, v)
	if err != nil || i.Sample == nil {
		return nil, err
	}
	size := 1 << bits.Len(uint(max(items, 1)-1)) // a sample of the next power of two
	sample := i.Sample(min(size, i.MaxBatch))
	if sample == nil {
		return nil, nil
	}
	parts := make([]dataplane.Portion, items)
	for k := range parts {
		parts[k] = dataplane.Portion{Query: serving.QueryID(k + 1), Items: 1}
		for _, t := range sample {
			if i.Batched {
				at := int64(k % int(cmp.Or(t.Shape[0], 1)))
				if t, err = t.Rows(at, at+1); err != nil {
					return nil, err
				}
			}
			parts[k].Inputs = append(parts[k].Inputs, t)
		}
	}
	return parts, nil
}

// pythonTimeout is how long a model in Python may take to be imported and loaded when it is to be described.
const pythonTimeout = 2 * time.Minute

// Timeout is how long it may take to ask what the inputs and outputs of models are.
func (b *Backends) Timeout() time.Duration {
	if b.Fleet.usesPython() {
		return pythonTimeout
	}
	return RemoteTimeout
}

// DescribePython loads a model in Python, FILE or FILE.py:CLASS, for a short time and returns what it says of itself.
// print takes what it prints. An error is of kind fault.Missing where there is no interpreter, else fault.Config.
func DescribePython(ctx context.Context, source string, print func(line string)) (python.Interface, error) {
	path, _ := config.SplitPython(source)
	b := python.New(python.Config{
		Models: map[serving.VariantID]python.Model{0: {Name: filepath.Base(path), Source: source}},
		Log:    func(_, line string) { print(line) },
	})
	ctx, done := context.WithTimeout(ctx, pythonTimeout)
	defer done()
	out, err := b.Interface(ctx, 0)
	switch {
	case errors.Is(err, python.ErrNoInterpreter):
		return out, fault.Wrap(fault.Missing, err)
	case err == nil && out.Inputs == nil:
		err = fmt.Errorf("%s does not say what its inputs are: give the class an attribute inputs, or write a "+
			"sluice.yaml with apps[].inputs (docs/python.md)", source)
	}
	if err != nil {
		return out, fault.Wrap(fault.Config, err)
	}
	return out, nil
}
