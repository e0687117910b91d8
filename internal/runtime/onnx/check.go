//go:build cgo

package onnx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/tensor"
)

// input returns the part's tensor for an input. Clients nearly always send them in the model's order.
func input(p *dataplane.Portion, i int, name string) *tensor.Tensor {
	if i >= 0 && i < len(p.Inputs) && p.Inputs[i].Name == name {
		return &p.Inputs[i]
	}
	for k := range p.Inputs {
		if p.Inputs[k].Name == name {
			return &p.Inputs[k]
		}
	}
	return nil
}

// check returns an error for a batch that the model cannot take, before the runtime gets any of it. It may reorder the
// inputs of the parts into the model's order.
func (m *model) check(b *dataplane.Batch, limit int) error {
	items := 0
	for i := range b.Portions {
		items += b.Portions[i].Items
	}
	if items != b.Items || items < 1 {
		return fmt.Errorf("batch says %d items, its %d parts have %d", b.Items, len(b.Portions), items)
	}
	if items > limit {
		return fmt.Errorf("batch of %d items is over the instance's limit of %d", items, limit)
	}
	if !m.batched && len(b.Portions) != 1 {
		return fmt.Errorf("batch has %d parts, but the model has no batch dimension and takes one query at a time",
			len(b.Portions))
	}
	for i := range b.Portions {
		p := &b.Portions[i]
		if p.Items < 1 {
			return fmt.Errorf("query %d has %d items, want at least 1", p.Query, p.Items)
		}
		extra, err := m.checkOptional(p)
		if err != nil {
			return fmt.Errorf("query %d: %w", p.Query, err)
		}
		if len(p.Inputs)-extra != len(m.inputs) {
			return fmt.Errorf("query %d has %d inputs, the model takes %d: %q", p.Query, len(p.Inputs)-extra,
				len(m.inputs), names(m.inputs))
		}
		for k := range m.inputs {
			t := input(p, k, m.inputs[k].Name)
			if t == nil {
				return fmt.Errorf("query %d: input %q is missing", p.Query, m.inputs[k].Name)
			}
			if err := m.checkInput(&m.inputs[k], t, p.Items); err != nil {
				return fmt.Errorf("query %d: input %q: %w", p.Query, t.Name, err)
			}
		}
	}
	return nil
}

// checkOptional checks the optional inputs of a part, and counts them.
func (m *model) checkOptional(p *dataplane.Portion) (n int, err error) {
	for i := range p.Inputs {
		t := &p.Inputs[i]
		k := m.optionalAt(t.Name)
		if k < 0 {
			continue
		}
		n++
		want := &m.optional[k]
		switch {
		case slices.ContainsFunc(p.Inputs[:i], func(x tensor.Tensor) bool { return x.Name == t.Name }):
			err = errors.New("it is given twice")
		case t.DType != want.DType:
			err = fmt.Errorf("datatype is %s, want %s", t.DType, want.DType)
		case want.Shape != nil && !tensor.Fits(t.Shape, want.Shape):
			err = fmt.Errorf("shape is %v, want %v", tensor.Dims(t.Shape), tensor.Dims(want.Shape))
		default:
			err = t.Validate()
		}
		if err != nil {
			return n, fmt.Errorf("input %q: %w", t.Name, err)
		}
	}
	return n, nil
}

func (m *model) checkInput(want *port, t *tensor.Tensor, items int) error {
	if t.DType != want.DType {
		return fmt.Errorf("datatype is %s, want %s", t.DType, want.DType)
	}
	if want.Shape != nil && !tensor.Fits(t.Shape, want.Shape) {
		return fmt.Errorf("shape is %v, want %v", tensor.Dims(t.Shape), tensor.Dims(want.Shape))
	}
	if m.batched && t.Shape[0] != int64(items) {
		return fmt.Errorf("shape is %v, but the query has %d items", tensor.Dims(t.Shape), items)
	}
	return t.Validate() // also of a BOOL that is neither 0 nor 1, which is undefined behaviour in C++
}

// sameRows reports whether two parts can be joined: all their inputs agree in every dimension but the first and those
// that are padded, by input, and none has optional inputs, which count for a whole run.
func (m *model) sameRows(a, b *dataplane.Portion, padded [][]int) bool {
	if len(a.Inputs) > len(m.inputs) || len(b.Inputs) > len(m.inputs) {
		return false
	}
	for k := range m.inputs {
		s, t := input(a, k, m.inputs[k].Name).Shape, input(b, k, m.inputs[k].Name).Shape
		if len(s) == 0 || len(s) != len(t) {
			return false
		}
		for d := 1; d < len(s); d++ {
			if s[d] != t[d] && (padded == nil || !slices.Contains(padded[k], d)) {
				return false
			}
		}
	}
	return true
}
