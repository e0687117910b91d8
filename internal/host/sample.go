package host

import (
	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
)

// sampleInputs returns inputs that are given with a model, to measure it with; nil for a model without them.
func (o *Opened) sampleInputs(v serving.VariantID, items int) []dataplane.Portion {
	m := o.tables.Variants[v].Described
	if m == nil || m.Sample == nil && m.Found == nil || m.MaxBatch == 0 && items > 1 {
		return nil
	}
	parts := make([]dataplane.Portion, items)
	for k := range parts {
		parts[k] = dataplane.Portion{Query: serving.QueryID(k + 1), Items: 1, Inputs: m.Trial(1)}
	}
	return parts
}
