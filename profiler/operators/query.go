package operators

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
)

// queries makes a batch of so many queries of one item each, named as callers name the inputs: x0, x1, ...
func queries(in []Operand, items int) (*dataplane.Batch, error) {
	names := make([]string, len(in))
	for i := range in {
		names[i] = fmt.Sprintf("x%d", i)
	}
	return named(in, names, items)
}

func named(in []Operand, names []string, items int) (*dataplane.Batch, error) {
	rng := rand.New(rand.NewPCG(3, 0x616c6f6e65))
	b := &dataplane.Batch{ID: 1, Items: items}
	for q := range items {
		p := dataplane.Part{Query: serving.QueryID(q + 1), Items: 1}
		for i := range in {
			item := in[i]
			item.Shape = slices.Clone(item.Shape)
			if len(item.Shape) > 0 {
				item.Shape[0] = 1
			}
			t, err := random(names[i], &item, rng)
			if err != nil {
				return nil, fmt.Errorf("input %q: %w", names[i], err)
			}
			p.Inputs = append(p.Inputs, t)
		}
		b.Parts = append(b.Parts, p)
	}
	return b, nil
}

// callKey identifies a call by what goes in and comes out.
func callKey(at *At, threads int) string {
	var in, out []string
	for i := range at.Inputs {
		in = append(in, at.Inputs[i].String())
	}
	for i := range at.Outputs {
		out = append(out, at.Outputs[i].String())
	}
	return fmt.Sprintf("call(%v)(%v) threads=%d", in, out, threads)
}
