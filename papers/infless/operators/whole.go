package operators

import (
	"context"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// Whole measures a whole model at one batch size, in the form of a prediction.
func Whole(ctx context.Context, rt Runtime, model string, batch, threads int, e Effort) (Timing, error) {
	b, err := singleItemQueries(model, batch)
	if err != nil {
		return Timing{}, err
	}
	return measure(ctx, rt, model, threads, batch, false, b, e)
}

// singleItemQueries returns a batch of items queries of one item each for a model file.
func singleItemQueries(model string, items int) (*dataplane.Batch, error) {
	info, err := onnxmodel.Read(model)
	if err != nil {
		return nil, err
	}
	var in []Operand
	var names []string
	for _, v := range info.Inputs {
		o := Operand{DType: v.DType}
		for _, d := range v.Shape {
			o.Shape = append(o.Shape, max(d, -d))
		}
		in, names = append(in, o), append(names, v.Name)
	}
	return queriesOf(in, names, items)
}
