package repository

import (
	"bytes"

	"github.com/sluice-serving/sluice/tensor"
)

// Example returns the model's sample as a batch of so many items, to run it without a query. A model without a batch
// dimension has one item. The result is empty for a model without a sample.
func (m *Model) Example(items int) []tensor.Tensor { return m.repeated(m.Sample, items) }

// Trial is Example for a measurement, which may fail: without a sample it is of inputs that lie beside the model. It is
// empty where nothing is given.
func (m *Model) Trial(items int) []tensor.Tensor {
	if m.Sample == nil {
		return m.repeated(m.Found, items)
	}
	return m.Example(items)
}

// repeated is a batch of so many items that are alike.
func (m *Model) repeated(item []tensor.Tensor, items int) []tensor.Tensor {
	out := make([]tensor.Tensor, len(item))
	for k, t := range item {
		out[k] = t
		if m.MaxBatch > 0 {
			out[k].Shape = append([]int64{int64(items)}, t.Shape...)
			out[k].Data = bytes.Repeat(t.Data, items)
		}
	}
	return out
}
