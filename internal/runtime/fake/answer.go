package fake

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/tensor"
)

// answer makes the outputs of one part. Inputs are copied: the caller may reuse their memory once Run has returned.
func answer(outputs []Output, p *dataplane.Portion) ([]tensor.Tensor, error) {
	if len(outputs) == 0 {
		out := make([]tensor.Tensor, len(p.Inputs))
		for i := range p.Inputs {
			out[i] = clone(&p.Inputs[i], p.Inputs[i].Name)
		}
		return out, nil
	}
	out := make([]tensor.Tensor, len(outputs))
	for i := range outputs {
		o := &outputs[i]
		if o.Input == "" {
			out[i] = repeat(o, p.Items)
			continue
		}
		at := slices.IndexFunc(p.Inputs, func(t tensor.Tensor) bool { return t.Name == o.Input })
		if at < 0 {
			return nil, fmt.Errorf("input %q is missing, output %q copies it", o.Input, o.Name)
		}
		out[i] = clone(&p.Inputs[at], o.Name)
	}
	return out, nil
}

// addRowOutputs adds the row outputs of a part. They replace outputs of the same names.
func addRowOutputs(out []tensor.Tensor, finds []RowOutput, p *dataplane.Portion) []tensor.Tensor {
	for _, f := range finds {
		upTo := func(items int) int64 { return int64(math.Round(float64(items) * f.PerItem)) }
		n := upTo(p.Offset+p.Items) - upTo(p.Offset)
		out = slices.DeleteFunc(out, func(t tensor.Tensor) bool { return t.Name == f.Name })
		out = append(out, tensor.Tensor{Name: f.Name, DType: tensor.Uint8, Shape: []int64{n}, Data: make([]byte, n)})
	}
	return out
}

func clone(t *tensor.Tensor, name string) tensor.Tensor {
	return tensor.Tensor{Name: name, DType: t.DType, Shape: slices.Clone(t.Shape), Data: bytes.Clone(t.Data)}
}

func repeat(o *Output, items int) tensor.Tensor {
	shape := slices.Clone(o.Row.Shape)
	shape[0] = int64(items)
	return tensor.Tensor{Name: o.Name, DType: o.Row.DType, Shape: shape, Data: bytes.Repeat(o.Row.Data, items)}
}
