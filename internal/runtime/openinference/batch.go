package openinference

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/tensor"
)

// join concatenates the parts' inputs along the first dimension. A single part is passed on as it is.
func join(parts []dataplane.Portion) ([]tensor.Tensor, error) {
	if len(parts) == 1 {
		return parts[0].Inputs, nil
	}
	first := parts[0].Inputs
	out := make([]tensor.Tensor, len(first))
	for k := range first {
		t := &first[k]
		if len(t.Shape) == 0 {
			return nil, fmt.Errorf("openinference: input %q has no rows and cannot be batched", t.Name)
		}
		rows, size := int64(0), 0
		for p := range parts {
			at := slices.IndexFunc(parts[p].Inputs, func(o tensor.Tensor) bool { return o.Name == t.Name })
			if at < 0 || len(parts[p].Inputs) != len(first) {
				return nil, fmt.Errorf("openinference: queries of one batch have different inputs (%q)", t.Name)
			}
			o := &parts[p].Inputs[at]
			if o.DType != t.DType || len(o.Shape) != len(t.Shape) || !slices.Equal(o.Shape[1:], t.Shape[1:]) {
				return nil, fmt.Errorf("openinference: input %q is %s%v in one query of the batch and %s%v in another",
					t.Name, t.DType, t.Shape, o.DType, o.Shape)
			}
			rows += o.Shape[0]
			size += len(o.Data)
		}
		joined := tensor.Tensor{Name: t.Name, DType: t.DType, Shape: slices.Clone(t.Shape), Data: make([]byte, 0, size)}
		joined.Shape[0] = rows
		for p := range parts {
			at := slices.IndexFunc(parts[p].Inputs, func(o tensor.Tensor) bool { return o.Name == t.Name })
			joined.Data = append(joined.Data, parts[p].Inputs[at].Data...)
		}
		out[k] = joined
	}
	return out, nil
}

// split cuts the outputs into the parts' rows, without copying. Those of a part that is alone may have other rows than
// items, unless the model is batched.
func split(parts []dataplane.Portion, items int, outputs []tensor.Tensor, batched bool) error {
	if len(parts) == 1 && !batched {
		parts[0].Outputs = outputs
		return nil
	}
	for p := range parts {
		parts[p].Outputs = make([]tensor.Tensor, len(outputs))
	}
	for k := range outputs {
		t := &outputs[k]
		if len(t.Shape) == 0 || t.Shape[0] != int64(items) {
			return fmt.Errorf("openinference: %w", rowsError(t.Name, t.Shape, items))
		}
		row := int64(0)
		for p := range parts {
			cut, err := t.Rows(row, row+int64(parts[p].Items))
			if err != nil {
				return fmt.Errorf("openinference: %w", err)
			}
			parts[p].Outputs[k] = cut
			row += int64(parts[p].Items)
		}
	}
	return nil
}
