package repository

import (
	"cmp"
	"slices"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/tensor"
)

// lengthOf returns what the length of a model's queries is: the open dimension of its inputs beside the items, if it
// has one name. Where one input alone has open dimensions, as pictures do, it is the product of all of them. Of other
// models nobody knows which dimension says how long they take.
func lengthOf(inputs []tensor.Spec, file []onnxmodel.Value, batched bool) *tensor.Length {
	var found *tensor.Length
	name := ""
	for _, in := range inputs {
		at := slices.IndexFunc(file, func(v onnxmodel.Value) bool { return v.Name == in.Name })
		if at < 0 || len(file[at].Shape) != len(in.Shape) { // shown in another shape
			return nil
		}
		symbols := file[at].Symbols
		axes, own := openAxes(in.Shape, symbols, batched)
		switch {
		case len(axes) == 0:
		case found == nil:
			found, name = &tensor.Length{Input: in.Name, Axes: axes}, own
		case name == "" || own != name:
			return nil
		}
	}
	return found
}

// openAxes returns the open dimensions of an input beside the items, one for each name, and the name if there is one.
func openAxes(shape []int64, symbols []string, batched bool) (axes []int, name string) {
	seen := make(map[string]bool)
	for d, n := range shape {
		if d == 0 && batched || n >= 0 {
			continue
		}
		own := ""
		if d < len(symbols) {
			own = symbols[d]
		}
		if own == "" || !seen[own] {
			axes = append(axes, d)
		}
		seen[own], name = true, own
	}
	if len(axes) > 1 {
		name = ""
	}
	return axes, name
}

// MaskName is the input that exporters of text models use for 1 at what is there and 0 at what is padded.
const MaskName = "attention_mask"

// Pads reports whether queries of different lengths may run together, padded: the model has a mask of whole numbers or
// truth values and of shape [items, length], and a length. An empty name is MaskName.
func (m *Model) Pads(mask string) bool {
	at := slices.IndexFunc(m.Inputs, func(s tensor.Spec) bool { return s.Name == cmp.Or(mask, MaskName) })
	if at < 0 || m.MaxBatch == 0 || m.Length == nil || len(m.Inputs[at].Shape) != 2 {
		return false
	}
	return m.Inputs[at].DType.Whole()
}
