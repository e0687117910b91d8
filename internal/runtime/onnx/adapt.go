//go:build cgo

package onnx

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// adapts reports whether the tensors of queries differ from the model's own.
func (m *model) adapts() bool { return m.sequence != nil || len(m.reshapes) > 0 || m.countsRows() }

// countsRows reports whether a query is one item for its callers, and as many for the model as it has rows.
func (m *model) countsRows() bool { return m.rows > 0 && m.batched }

// rowsOf counts the rows of a query that is one item for its callers.
func (m *model) rowsOf(p *dataplane.Portion) (int, error) {
	rows, first := int64(1), ""
	for k := range p.Inputs {
		t := &p.Inputs[k]
		if m.optionalAt(t.Name) >= 0 {
			continue
		}
		if len(t.Shape) == 0 {
			return 0, fmt.Errorf("%w: input %q has shape [], its first dimension must count the rows of the batch",
				dataplane.ErrUnfit, t.Name)
		}
		switch n := t.Shape[0]; {
		case n < 1 || n > int64(m.rows):
			return 0, fmt.Errorf("%w: input %q has shape %v: the batch size must be from 1 to %d, the model's "+
				"max_batch_size", dataplane.ErrUnfit, t.Name, tensor.Dims(t.Shape), m.rows)
		case first != "" && n != rows:
			return 0, fmt.Errorf("%w: input %q has %d rows, input %q has %d: they must be the same",
				dataplane.ErrUnfit, t.Name, n, first, rows)
		default:
			rows, first = n, t.Name
		}
	}
	return int(rows), nil
}

// adapt returns a batch with the inputs that the model has: in its own shapes, with what it is told of sequences, and
// with their states. The batch of the caller is not changed.
func (m *model) adapt(whole *dataplane.Batch) (*dataplane.Batch, error) {
	b := *whole
	b.Portions = slices.Clone(whole.Portions)
	for k := range b.Portions {
		p := &b.Portions[k]
		p.Inputs = slices.Clone(p.Inputs)
		if m.countsRows() {
			rows, err := m.rowsOf(p)
			if err != nil {
				return nil, err
			}
			b.Items += rows - p.Items
			p.Items = rows
		}
		for i := range p.Inputs {
			t := &p.Inputs[i]
			own, ok := m.reshapes[t.Name]
			if !ok || m.fits(t.Name, t.Shape) {
				continue
			}
			shape, err := m.reshaped(t, own)
			if err != nil {
				return nil, fmt.Errorf("input %q: %w", t.Name, err)
			}
			t.Shape = shape
		}
		if m.sequence == nil {
			continue
		}
		for i := range m.sequence.Controls {
			t, err := controlTensor(&m.sequence.Controls[i], p)
			if err != nil {
				return nil, err
			}
			p.Inputs = append(p.Inputs, t)
		}
		if err := m.addStates(p); err != nil {
			return nil, err
		}
	}
	return &b, nil
}

// fits reports whether a shape is already the model's own for an input.
func (m *model) fits(name string, shape []int64) bool {
	k := slices.IndexFunc(m.inputs, func(p port) bool { return p.Name == name })
	return k >= 0 && len(m.inputs[k].Shape) == len(shape) && slices.EqualFunc(m.inputs[k].Shape, shape,
		func(want, have int64) bool { return want < 0 || want == have })
}

// reshaped returns the shape to which a tensor changes: with its items first where the model batches, and one variable
// dimension at most that follows from the number of elements.
func (m *model) reshaped(t *tensor.Tensor, to []int64) ([]int64, error) {
	out := slices.Clone(to)
	if m.batched && len(out) > 0 && len(t.Shape) > 0 {
		out[0] = t.Shape[0]
	}
	n, err := tensor.Elements(t.Shape, maxTensorBytes)
	if err != nil {
		return nil, err
	}
	fixed, open := int64(1), -1
	for k, d := range out {
		if d < 0 {
			open = k
		} else {
			fixed *= d
		}
	}
	if open >= 0 && fixed > 0 {
		out[open] = n / fixed
		fixed *= out[open]
	}
	if fixed != n {
		return nil, fmt.Errorf("shape %v cannot become %v", tensor.Dims(t.Shape), tensor.Dims(to))
	}
	return out, nil
}

// controlTensor tells the model of the sequence that a part's query is of, the same for all its items.
func controlTensor(c *repository.Control, p *dataplane.Portion) (tensor.Tensor, error) {
	var element []byte
	var err error
	switch c.Kind {
	case pb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_CORRID:
		if element, err = sequenceElement(c, p.Stream); err != nil {
			return tensor.Tensor{}, err
		}
	case pb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_START:
		element = either(c, p.Begins)
	case pb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_END:
		element = either(c, p.Ends)
	default:
		element = either(c, true) // there are no empty places in our batches
	}
	shape := slices.Clone(c.Shape)
	for k, d := range shape {
		if d < 0 {
			shape[k] = 1
			if k == 0 {
				shape[k] = int64(p.Items)
			}
		}
	}
	n, err := tensor.Elements(shape, maxTensorBytes/int64(max(len(element), 1)))
	if err != nil {
		return tensor.Tensor{}, fmt.Errorf("input %q: %w", c.Name, err)
	}
	return tensor.Tensor{Name: c.Name, DType: c.DType, Shape: shape, Data: bytes.Repeat(element, int(n))}, nil
}

func either(c *repository.Control, yes bool) []byte {
	if yes {
		return c.True
	}
	return c.False
}

// sequenceElement is the name of a sequence as an element of a control input; 0 or "" for no sequence.
func sequenceElement(c *repository.Control, name string) ([]byte, error) {
	if c.DType == tensor.Bytes {
		return tensor.AppendBytes(nil, []byte(name)), nil
	}
	n := uint64(0)
	if name != "" {
		var err error
		if n, err = strconv.ParseUint(name, 10, 8*c.DType.Size()); err != nil {
			return nil, fmt.Errorf("input %q: sequence %.64q is no %s, which the model needs", c.Name, name, c.DType)
		}
	}
	out := make([]byte, 8)
	for k := range out {
		out[k] = byte(n >> (8 * k))
	}
	return out[:c.DType.Size()], nil
}

// restore gives a batch the outputs and states of the one that adapt made of it: in the shapes that clients see, and
// without states among them.
func (m *model) restore(whole, ran *dataplane.Batch) error {
	for k := range whole.Portions {
		p := &whole.Portions[k]
		p.Outputs = ran.Portions[k].Outputs
		for i := range p.Outputs {
			t := &p.Outputs[i]
			if seen, ok := m.seen[t.Name]; ok {
				shape, err := m.reshaped(t, seen)
				if err != nil {
					return fmt.Errorf("output %q: %w", t.Name, err)
				}
				t.Shape = shape
			}
		}
		if m.sequence == nil || len(m.sequence.States) == 0 {
			continue
		}
		if err := m.keepStates(p); err != nil {
			return err
		}
	}
	return nil
}

// visible returns the tensors that clients see, in the shapes in which they see them.
func (m *model) visible(ps []port) []tensor.Spec {
	out := []tensor.Spec{} // never nil: none is known to be there
	for _, s := range specs(ps) {
		if m.sequence != nil && m.sequence.Hides(s.Name) {
			continue
		}
		if shape, ok := m.seen[s.Name]; ok {
			s.Shape = slices.Clone(shape)
		}
		out = append(out, s)
	}
	return out
}
