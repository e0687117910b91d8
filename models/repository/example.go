package repository

import (
	"bytes"

	"github.com/sluice-serving/sluice/tensor"
)

// Example returns the model's sample as a batch of so many items, to run it without a query. A model without a batch
// dimension has one item. The result is empty for a model without a sample.
func (m *Model) Example(items int) []tensor.Tensor {
	out := make([]tensor.Tensor, len(m.Sample))
	for k, t := range m.Sample {
		out[k] = t
		if m.MaxBatch > 0 {
			out[k].Shape = append([]int64{int64(items)}, t.Shape...)
			out[k].Data = bytes.Repeat(t.Data, items)
		}
	}
	return out
}
