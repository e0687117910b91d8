//go:build cgo

package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/tensor"
)

// maxStateRank bounds the dimensions of a state.
const maxStateRank = 16

var errCutState = errors.New("the state of the sequence is cut short")

// addStates adds the states of a part's sequence to its inputs: one after the other in the part's state, what a
// sequence starts with where there is none.
func (m *model) addStates(p *dataplane.Portion) error {
	rest, begins := p.State, p.State == nil
	for i := range m.sequence.States {
		s := &m.sequence.States[i]
		t := tensor.Tensor{Name: s.Input, DType: s.DType, Shape: slices.Clone(s.Start)}
		items := int64(1)
		if m.batched {
			items = int64(p.Items)
			t.Shape = append([]int64{items}, t.Shape...)
		}
		var err error
		switch {
		case begins:
			t.Data, err = s.Begin(items)
		case s.Fixed():
			rest, err = cutFixed(&t, rest, p)
		default:
			rest, err = cutState(&t, rest)
			if err == nil && m.batched && (len(t.Shape) == 0 || t.Shape[0] != int64(p.Items)) {
				err = sameItems(p)
			}
		}
		if err != nil {
			return fmt.Errorf("state %q: %w", s.Input, err)
		}
		p.Inputs = append(p.Inputs, t)
	}
	if len(rest) > 0 {
		return sameItems(p)
	}
	return nil
}

func sameItems(p *dataplane.Portion) error {
	return fmt.Errorf("sequence %.64q: its requests must all have the same number of items", p.Stream)
}

// cutFixed takes a state of the shape that it began with off the front of those of a sequence.
func cutFixed(t *tensor.Tensor, from []byte, p *dataplane.Portion) ([]byte, error) {
	n, err := tensor.Elements(t.Shape, maxTensorBytes/int64(t.DType.Size()))
	if err != nil {
		return nil, err
	}
	size := int(n) * t.DType.Size()
	if len(from) < size {
		return nil, sameItems(p)
	}
	t.Data = from[:size:size]
	return from[size:], nil
}

// keepStates takes the states that a part's model gave out of its outputs, but for those that clients may see.
func (m *model) keepStates(p *dataplane.Portion) error {
	p.State = []byte{}
	for i := range m.sequence.States {
		s := &m.sequence.States[i]
		at := slices.IndexFunc(p.Outputs, func(t tensor.Tensor) bool { return t.Name == s.Output })
		if t := &p.Outputs[at]; s.Fixed() {
			p.State = append(p.State, t.Data...)
		} else {
			p.State = appendState(p.State, t)
		}
		if !s.Shown {
			p.Outputs = slices.Delete(p.Outputs, at, at+1)
		}
	}
	return nil
}

// appendState writes a state whose shape or length varies: its rank, its dimensions and its length as varints, and its
// data.
func appendState(to []byte, t *tensor.Tensor) []byte {
	to = binary.AppendUvarint(to, uint64(len(t.Shape)))
	for _, d := range t.Shape {
		to = binary.AppendUvarint(to, uint64(d))
	}
	return append(binary.AppendUvarint(to, uint64(len(t.Data))), t.Data...)
}

// cutState reads what appendState has written, and returns the rest.
func cutState(t *tensor.Tensor, from []byte) ([]byte, error) {
	next := func() (int64, bool) {
		n, size := binary.Uvarint(from)
		if size <= 0 || n > maxTensorBytes {
			return 0, false
		}
		from = from[size:]
		return int64(n), true
	}
	rank, ok := next()
	if !ok || rank > maxStateRank {
		return nil, errCutState
	}
	t.Shape = make([]int64, rank)
	for k := range t.Shape {
		if t.Shape[k], ok = next(); !ok {
			return nil, errCutState
		}
	}
	n, ok := next()
	if !ok || n > int64(len(from)) {
		return nil, errCutState
	}
	t.Data = from[:n:n]
	return from[n:], nil
}
