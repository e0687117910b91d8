package repository

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/tensor"
)

// dataSetFolder holds inputs of a model in the layout of the ONNX standard and its model zoo: input_0.pb and so on,
// beside the model's file or in the model's folder.
const dataSetFolder = "test_data_set_0"

// readDataSet reads inputs that lie beside the model. Nobody has said that they are for this: what cannot be used is a
// warning, and the model is measured with guessed inputs then.
func (r *Repository) readDataSet(m *Model) {
	for _, folder := range []string{
		path.Join(m.Name, strconv.FormatInt(m.Latest().Number, 10), dataSetFolder), path.Join(m.Name, dataSetFolder),
	} {
		found, err := r.dataSet(m, folder)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			m.warnf("%s: %v", folder, err)
		default:
			m.Found = found
			return
		}
	}
}

// dataSet reads the inputs in a folder as tensors of one item, without the batch dimension.
func (r *Repository) dataSet(m *Model, folder string) ([]tensor.Tensor, error) {
	var out []tensor.Tensor
	for k := range m.Inputs {
		name := fmt.Sprintf("input_%d.pb", k)
		file, err := r.ReadFile(path.Join(folder, name), maxWarmupBytes)
		if err != nil {
			return nil, err
		}
		x, err := onnxmodel.ParseTensor(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		at := slices.IndexFunc(m.Inputs, func(s tensor.Spec) bool { return s.Name == x.Name })
		if at < 0 {
			at = k // many files do not name what they hold
		}
		t := tensor.Tensor{
			Name: m.Inputs[at].Name, DType: tensor.ParseDType(x.DType.String()), Shape: x.Shape, Data: x.Data,
		}
		if t.DType != m.Inputs[at].DType {
			return nil, fmt.Errorf("%s is of type %s, input %q of %s", name, x.DType, t.Name, m.Inputs[at].DType)
		}
		if slices.ContainsFunc(out, func(o tensor.Tensor) bool { return o.Name == t.Name }) {
			return nil, fmt.Errorf("%s: input %q was there before", name, t.Name)
		}
		if m.MaxBatch > 0 {
			if len(t.Shape) == 0 || t.Shape[0] < 1 {
				return nil, fmt.Errorf("%s: shape %v has no item", name, t.Shape)
			}
			if t, err = t.Rows(0, 1); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			t.Shape = t.Shape[1:]
		}
		if err := t.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, t)
	}
	return out, nil
}
