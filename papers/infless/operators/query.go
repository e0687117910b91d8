package operators

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
)

// queries returns a batch of items queries of one item each, with inputs x0, x1 and so on.
func queries(at *BatchGraph, items int) (*dataplane.Batch, error) {
	item := slices.Clone(at.Inputs)
	names := make([]string, len(item))
	for i := range item {
		names[i] = fmt.Sprintf("x%d", i)
		if at.Batched {
			item[i].Shape = append([]int64{1}, item[i].Shape[1:]...)
		}
	}
	return queriesOf(item, names, items)
}

// queriesOf returns a batch of items queries, each with random inputs like those of item.
func queriesOf(item []Operand, names []string, items int) (*dataplane.Batch, error) {
	rng := rand.New(rand.NewPCG(3, 0x616c6f6e65))
	b := &dataplane.Batch{ID: 1, Items: items}
	for q := range items {
		p := dataplane.Portion{Query: serving.QueryID(q + 1), Items: 1}
		for i := range item {
			t, err := random(names[i], &item[i], rng)
			if err != nil {
				return nil, fmt.Errorf("input %q: %w", names[i], err)
			}
			p.Inputs = append(p.Inputs, t)
		}
		b.Portions = append(b.Portions, p)
	}
	return b, nil
}

// callKey identifies a call by its inputs, outputs and threads.
func callKey(at *BatchGraph, threads int) string {
	var in, out []string
	for i := range at.Inputs {
		in = append(in, at.Inputs[i].String())
	}
	for i := range at.Outputs {
		out = append(out, at.Outputs[i].String())
	}
	return fmt.Sprintf("call(%v)(%v) threads=%d", in, out, threads)
}
