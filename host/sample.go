package host

import (
	"bytes"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/models/repository"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// sampleOf returns a model's sample for so many items.
func sampleOf(m *repository.Model, items int) []tensor.Tensor {
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

// sampleInputs returns a model's sample to measure it with; nil for a model without one.
func (o *Opened) sampleInputs(v serving.VariantID, items int) []dataplane.Portion {
	m := o.tables.Variants[v].Described
	if m == nil || m.Sample == nil || m.MaxBatch == 0 && items > 1 {
		return nil
	}
	parts := make([]dataplane.Portion, items)
	for k := range parts {
		parts[k] = dataplane.Portion{Query: serving.QueryID(k + 1), Items: 1, Inputs: sampleOf(m, 1)}
	}
	return parts
}
