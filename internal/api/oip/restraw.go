package oip

import (
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

// decodeRaw reads a request whose whole body is the one input of a model. If the model batches, it is one item. At most
// one other dimension may be variable; the size of the body decides it. A BYTES input must be one element of shape [1].
// Nothing is guessed: a shape that the size does not determine is an error (Triton's binary data extension).
func decodeRaw(body []byte, raw func() (tensor.Spec, bool, error)) (*RESTRequest, error) {
	if raw == nil {
		return nil, invalid(HeaderLength, "is 0, but this model does not take raw requests")
	}
	s, batched, err := raw()
	if err != nil {
		return nil, err
	}
	if s.Shape == nil {
		return nil, invalid(HeaderLength, "is 0, but the shape of input %q is not known", s.Name)
	}
	t := tensor.Tensor{Name: s.Name, DType: s.DType, Shape: slices.Clone(s.Shape)}
	item := t.Shape
	if batched && len(item) > 0 {
		item[0] = 1
		item = item[1:]
	}
	if s.DType == tensor.Bytes {
		if !slices.Equal(item, []int64{1}) {
			return nil, invalid(HeaderLength, "is 0: For BYTE datatype raw input '%s', the model must have input "+
				"shape [1], and it has %v", s.Name, tensor.Dims(s.Shape))
		}
		t.Data = tensor.AppendBytes(nil, body)
	} else {
		t.Data = body
		if err := fillOpen(item, &s, len(body)); err != nil {
			return nil, err
		}
	}
	if err := t.Validate(); err != nil {
		return nil, invalid("", "%v", err)
	}
	return &RESTRequest{Inputs: []tensor.Tensor{t}, BinaryOutputs: true}, nil
}

// fillOpen sets the one variable dimension of an item from the size of its data in bytes.
func fillOpen(item []int64, s *tensor.Spec, size int) error {
	open, fixed := -1, int64(s.DType.Size())
	for k, d := range item {
		switch {
		case d < 0 && open >= 0:
			return invalid(HeaderLength, "is 0: The shape of the raw input '%s' can not be deduced because there are "+
				"more than one variable-sized dimension: %v", s.Name, tensor.Dims(s.Shape))
		case d < 0:
			open = k
		default:
			fixed *= d
		}
	}
	if open < 0 {
		return nil
	}
	if fixed == 0 {
		return invalid(HeaderLength, "is 0, but input %q has no elements in shape %v: its variable dimension could be "+
			"anything", s.Name, tensor.Dims(s.Shape))
	}
	item[open] = int64(size) / fixed
	return nil
}
