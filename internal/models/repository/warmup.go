package repository

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/tensor"
)

const (
	// warmupFolder holds the files of samples, inside a model's folder.
	warmupFolder = "warmup"
	// maxWarmupBytes bounds the data of one input of a sample.
	maxWarmupBytes = 64 << 20
)

// readWarmup reads the first sample of model_warmup that has all inputs. Its tensors are of one item, without the batch
// dimension. A sample that cannot be read is a warning: the model is warmed up with zeros then.
func (r *Repository) readWarmup(m *Model) {
	for k, w := range m.Config.ModelWarmup {
		sample, err := r.sample(m, w)
		if err != nil {
			m.warnf("model_warmup[%d]: %v", k, err)
			continue
		}
		if m.Sample == nil {
			m.Sample = sample
		}
	}
}

func (r *Repository) sample(m *Model, w *pb.ModelWarmup) ([]tensor.Tensor, error) {
	var out []tensor.Tensor
	for _, name := range slices.Sorted(maps.Keys(w.Inputs)) {
		in := w.Inputs[name]
		at := slices.IndexFunc(m.Inputs, func(s tensor.Spec) bool { return s.Name == name })
		if at < 0 || m.Inputs[at].DType != dtypes[in.DataType] {
			return nil, fmt.Errorf("input %q is no input of the model, or of another data_type", name)
		}
		t := tensor.Tensor{Name: name, DType: dtypes[in.DataType], Shape: slices.Clone(in.Dims)}
		n, err := tensor.Elements(t.Shape, maxWarmupBytes/8)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", name, err)
		}
		switch file := in.GetInputDataFile(); {
		case file != "":
			at := path.Join(m.Name, warmupFolder, path.Clean("/"+file))
			if t.Data, err = r.ReadFile(at, maxWarmupBytes); err != nil {
				return nil, err
			}
		case t.DType == tensor.Bytes:
			for range n {
				t.Data = tensor.AppendBytes(t.Data, nil)
			}
		default: // random data is any: zeros are
			t.Data = make([]byte, n*int64(t.DType.Size()))
		}
		if err := t.Validate(); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	if len(out) < len(m.Inputs) {
		return nil, fmt.Errorf("%d of %d inputs are given", len(out), len(m.Inputs))
	}
	return out, nil
}
