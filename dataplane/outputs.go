package dataplane

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

// TooLargeError is the error of a query whose outputs are larger than one query's may be.
type TooLargeError struct{ Bytes, Limit int64 }

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the outputs have %d bytes, of one query at most %d are taken (server.limits.output): ask for "+
		"those that you need (outputs), or have the limit raised", e.Bytes, e.Limit)
}

// within returns an error for outputs of more than limit bytes.
func within(outputs []tensor.Tensor, limit int64) error {
	if n := tensor.TotalBytes(outputs); n > limit {
		return &TooLargeError{n, limit}
	}
	return nil
}

// only removes the outputs that are not wanted, in place. A runner may have given them for another query of its batch.
func only(outputs []tensor.Tensor, wanted []string) []tensor.Tensor {
	if wanted == nil {
		return outputs
	}
	return slices.DeleteFunc(outputs, func(t tensor.Tensor) bool { return !slices.Contains(wanted, t.Name) })
}

// joinable tells why the outputs of two parts of a stage's items cannot be joined along their rows. first is nil for
// the first part.
func joinable(first, next []tensor.Tensor) error {
	for k := range next {
		if len(next[k].Shape) == 0 {
			return fmt.Errorf(
				"output %q has no rows, and the items of the query run in several batches: nothing can be joined",
				next[k].Name)
		}
	}
	if first == nil {
		return nil
	}
	if len(first) != len(next) {
		return fmt.Errorf("it gives %d outputs for some items of a query and %d for others", len(first), len(next))
	}
	for k := range next {
		a, b := &first[k], &next[k]
		if a.Name != b.Name || a.DType != b.DType || !slices.Equal(a.Shape[1:], b.Shape[1:]) {
			return fmt.Errorf(
				"output %q is %s%v for some items of a query, and %q is %s%v for others: only the first dimension "+
					"may differ", a.Name, a.DType, a.Shape, b.Name, b.DType, b.Shape)
		}
	}
	return nil
}

// joined concatenates the rows of the outputs of parts, of which joinable has found nothing wrong.
func joined(parts []partOutputs) []tensor.Tensor {
	if len(parts) == 1 {
		return slices.Clone(parts[0].outputs)
	}
	out := make([]tensor.Tensor, len(parts[0].outputs))
	for k, first := range parts[0].outputs {
		o := tensor.Tensor{Name: first.Name, DType: first.DType, Shape: slices.Clone(first.Shape)}
		o.Shape[0] = 0
		size := 0
		for _, p := range parts {
			size += len(p.outputs[k].Data)
		}
		o.Data = make([]byte, 0, size)
		for _, p := range parts {
			o.Shape[0] += p.outputs[k].Shape[0]
			o.Data = append(o.Data, p.outputs[k].Data...)
		}
		out[k] = o
	}
	return out
}

// inRows reports whether outputs have a row for each of so many items.
func inRows(outputs []tensor.Tensor, items int) bool {
	return !slices.ContainsFunc(outputs, func(t tensor.Tensor) bool {
		return len(t.Shape) == 0 || t.Shape[0] != int64(items)
	})
}

// replaces tells why the outputs of a part cannot take the place of those of the same items among all of a query's.
func replaces(all []tensor.Tensor, part *Portion) error {
	if !inRows(part.Outputs, part.Items) {
		return fmt.Errorf("of %d items of a query there are other than %d rows", part.Items, part.Items)
	}
	return joinable(all, part.Outputs)
}

// replace puts the outputs of a part in the place of those of the same items among all of a query's, of which replaces
// has found nothing wrong. Those of all are written to: they are the query's alone.
func replace(all []tensor.Tensor, part *Portion) {
	from, to := int64(part.Offset), int64(part.Offset+part.Items)
	for k := range all {
		t, data := &all[k], part.Outputs[k].Data
		own, err := t.Rows(from, to)
		switch {
		case err != nil: // replaces has looked at it
		case len(own.Data) == len(data):
			copy(own.Data, data)
		default: // texts of other lengths
			before, _ := t.Rows(0, from)
			after, _ := t.Rows(to, t.Shape[0])
			t.Data = slices.Concat(before.Data, data, after.Data)
		}
	}
}

// copied returns a copy of tensors that may be written to.
func copied(list []tensor.Tensor) []tensor.Tensor {
	out := slices.Clone(list)
	for k := range out {
		out[k].Data = slices.Clone(out[k].Data)
	}
	return out
}

// withoutRows returns the outputs of a stage that is passed over: tensors without rows, as far as its outputs are
// known.
func withoutRows(specs []tensor.Spec) []tensor.Tensor {
	out := make([]tensor.Tensor, len(specs))
	for k, s := range specs {
		out[k] = tensor.Tensor{Name: s.Name, DType: s.DType, Shape: make([]int64, max(len(s.Shape), 1))}
		for d := 1; d < len(s.Shape); d++ {
			out[k].Shape[d] = max(s.Shape[d], 0)
		}
	}
	return out
}
