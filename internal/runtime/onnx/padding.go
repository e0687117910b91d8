//go:build cgo

package onnx

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/tensor"
)

// padding says how queries of different lengths become one batch: the shorter ones get zeros at their ends.
type padding struct {
	mask            int     // the input that says where a query ends
	inputs, outputs [][]int // by place, the dimensions that are the length
	proved, refused atomic.Bool
}

// errPadded is for a model whose answers are other ones with padding. Its padding is refused from then on.
var errPadded = errors.New("padding changes the model's answers")

// newPadding returns how the queries of a model are padded, nil where they must not be. The length is the dimension of
// the mask beside the items; other tensors have it where their dimension has its name. Without the names nothing is
// known of outputs: one with an open dimension that no input has may depend on the length in a way that cannot be cut.
func newPadding(m *model, file *onnxmodel.Info) *padding {
	at := slices.IndexFunc(m.inputs, func(p port) bool { return p.Name == m.mask })
	if !m.batched || m.sequence != nil || at < 0 || len(m.inputs[at].Shape) != 2 || !m.inputs[at].DType.Whole() {
		return nil
	}
	symbols := make(map[string][]string)
	inputs := make(map[string]bool)
	for _, v := range file.Inputs {
		symbols[v.Name] = v.Symbols
		for d, name := range v.Symbols {
			inputs[name] = inputs[name] || d > 0 && name != ""
		}
	}
	if len(symbols[m.mask]) != 2 {
		return nil
	}
	for _, v := range file.Outputs {
		if symbols[v.Name] == nil { // one that is an input as well is what its query gave
			symbols[v.Name] = v.Symbols
		}
	}
	items, length := symbols[m.mask][0], symbols[m.mask][1]
	if length == "" || length == items {
		return nil
	}
	out := &padding{mask: at}
	having := 0
	for i, p := range slices.Concat(m.inputs, m.outputs) {
		axes, ok := axesOf(&p, symbols[p.Name], length)
		if !ok {
			return nil
		}
		if i < len(m.inputs) {
			out.inputs = append(out.inputs, axes)
			having += min(len(axes), 1)
			continue
		}
		for d, n := range p.Shape {
			if d > 0 && n < 0 && !inputs[symbols[p.Name][d]] {
				return nil
			}
		}
		out.outputs = append(out.outputs, axes)
	}
	if len(out.inputs[at]) == 0 || having < 2 { // a mask of what no other input has is of something else
		return nil
	}
	return out
}

// axesOf returns the open dimensions of a tensor with a name, and whether they can be padded.
func axesOf(p *port, symbols []string, name string) (axes []int, ok bool) {
	if p.Shape == nil || len(symbols) != len(p.Shape) || len(symbols) > 0 && symbols[0] == name {
		return nil, false
	}
	for d := range symbols {
		if symbols[d] == name && p.Shape[d] < 0 {
			axes = append(axes, d)
		}
	}
	return axes, len(axes) == 0 || p.DType != tensor.Bytes
}

// lengths are those of parts that may be padded, by place; 0 for others. They are nil for a model that is not padded.
func (m *model) lengths(parts []dataplane.Portion) []int64 {
	if m.padding == nil || m.padding.refused.Load() {
		return nil
	}
	out := make([]int64, len(parts))
	for i := range parts {
		out[i] = m.length(&parts[i])
	}
	return out
}

// length is the length of a part; 0 where its inputs do not agree, or where a row is masked whole: a model that attends
// to all of nothing has an answer that depends on how much nothing there is.
func (m *model) length(part *dataplane.Portion) int64 {
	if len(part.Inputs) > len(m.inputs) {
		return 0
	}
	mask, n := input(part, m.padding.mask, m.mask), m.lengthIn(part)
	for k, axes := range m.padding.inputs {
		t := input(part, k, m.inputs[k].Name)
		for _, d := range axes {
			if t.Shape[d] != n {
				return 0
			}
		}
	}
	if n == 0 {
		return 0
	}
	for row := range slices.Chunk(mask.Data, int(n)*mask.DType.Size()) {
		if !slices.ContainsFunc(row, func(b byte) bool { return b != 0 }) {
			return 0
		}
	}
	return n
}

// lengthIn is the length of a part as its mask has it.
func (m *model) lengthIn(part *dataplane.Portion) int64 {
	return input(part, m.padding.mask, m.mask).Shape[1]
}
