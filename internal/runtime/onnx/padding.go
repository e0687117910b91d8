//go:build cgo

package onnx

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/tensor"
)

// maskName is the input that exporters of text models use for 1 at what is there and 0 at what is padded.
const maskName = "attention_mask"

// runWorth is what a run of its own costs beside its elements, in items x length: operators have to start, and work
// slower on few rows. Queries are split into the runs that cost least. Lengths 100, 97, 90, 20, 5 of one item each:
//
//	one run for all               16 + 5*100                  516
//	a run for each                5*16 + 312                  392
//	100 97 90 | 20 5              2*16 + 3*100 + 2*20         372
//	100 97 | 90 | 20 5            3*16 + 2*100 + 90 + 2*20    378
//
// So padding is at most 16 for each run that it saves. A bound on its share instead would join long queries, which gains
// nothing: BenchmarkLengths.
const runWorth = 16

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
	at := slices.IndexFunc(m.inputs, func(p port) bool { return p.Name == maskName })
	if !m.batched || m.sequence != nil || at < 0 || len(m.inputs[at].Shape) != 2 || !m.inputs[at].whole() {
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
	if len(symbols[maskName]) != 2 {
		return nil
	}
	for _, v := range file.Outputs {
		if symbols[v.Name] == nil { // one that is an input as well is what its query gave
			symbols[v.Name] = v.Symbols
		}
	}
	items, length := symbols[maskName][0], symbols[maskName][1]
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

// whole reports whether a port has whole numbers or truth values.
func (p *port) whole() bool {
	switch p.DType {
	case tensor.Bool, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Uint16, tensor.Uint32,
		tensor.Uint64:
		return true
	}
	return false
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
	mask, n := input(part, m.padding.mask, maskName), m.lengthIn(part)
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

// groups returns the parts that run together, by place. The first part of a group is the longest.
func (m *model) groups(parts []dataplane.Portion) (out [][]int) {
	lengths := m.lengths(parts)
	for i := range parts {
		k := slices.IndexFunc(out, func(g []int) bool {
			if lengths == nil || lengths[g[0]] == 0 && lengths[i] == 0 {
				return m.sameRows(&parts[g[0]], &parts[i], nil)
			}
			return lengths[g[0]] > 0 && lengths[i] > 0 && m.sameRows(&parts[g[0]], &parts[i], m.padding.inputs)
		})
		if k < 0 {
			k, out = len(out), append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	if lengths == nil {
		return out
	}
	var runs [][]int
	for _, g := range out {
		slices.SortStableFunc(g, func(a, b int) int { return cmp.Compare(lengths[b], lengths[a]) })
		runs = append(runs, split(g, parts, lengths)...)
	}
	return runs
}

// split splits a group, the longest first, into the runs that cost least.
func split(g []int, parts []dataplane.Portion, lengths []int64) (out [][]int) {
	type plan struct {
		cost int64
		next int // where its second run begins
	}
	best := make([]plan, len(g)+1) // by where it begins
	for from := len(g) - 1; from >= 0; from-- {
		items := int64(0)
		best[from].cost = math.MaxInt64
		for k := from; k < len(g); k++ {
			items += int64(parts[g[k]].Items)
			if cost := runWorth + items*lengths[g[from]] + best[k+1].cost; cost < best[from].cost {
				best[from] = plan{cost, k + 1}
			}
		}
	}
	for from := 0; from < len(g); from = best[from].next {
		out = append(out, g[from:best[from].next])
	}
	return out
}

// padded reports whether the parts of a run differ in their lengths. The first is the longest, the last the shortest.
func (m *model) padded(parts []dataplane.Portion) bool {
	return m.padding != nil && m.lengthIn(&parts[0]) != m.lengthIn(&parts[len(parts)-1])
}

// lengthIn is the length of a part as its mask has it.
func (m *model) lengthIn(part *dataplane.Portion) int64 {
	return input(part, m.padding.mask, maskName).Shape[1]
}

// prove runs the part of a padded batch that has the most padding alone, and compares its answers. The name of an input
// says little, and a model may read its mask at some places only.
func (s *session) prove(ctx context.Context, padded *dataplane.Portion) error {
	alone := []dataplane.Portion{*padded}
	alone[0].Outputs = nil
	if err := s.run(ctx, alone, padded.Items); err != nil {
		return err
	}
	for k := range padded.Outputs {
		if !alike(&padded.Outputs[k], &alone[0].Outputs[k]) {
			return fmt.Errorf("output %q: %w", padded.Outputs[k].Name, errPadded)
		}
	}
	s.m.padding.proved.Store(true)
	return nil
}

// alike reports whether two answers are the same but for rounding, which kernels for other sizes of matrices bring:
// numbers apart by a thousandth of the largest at most, and all else equal.
func alike(a, b *tensor.Tensor) bool {
	if !slices.Equal(a.Shape, b.Shape) || len(a.Data) != len(b.Data) {
		return false
	}
	if a.DType != tensor.FP32 && a.DType != tensor.FP64 {
		return bytes.Equal(a.Data, b.Data)
	}
	largest, apart := 0.0, 0.0
	for at := 0; at < len(a.Data); at += a.DType.Size() {
		x, y := number(a, at), number(b, at)
		largest = max(largest, math.Abs(x), math.Abs(y))
		if x != y {
			apart = max(apart, math.Abs(x-y))
		}
	}
	return apart <= largest/1000 // not so for what is no number
}

// number is the element of floating point at an offset of a tensor's bytes.
func number(t *tensor.Tensor, at int) float64 {
	if t.DType == tensor.FP32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(t.Data[at:])))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(t.Data[at:]))
}

// cuts returns the dimensions in which output k of a run is cut back to the length of each part.
func (s *session) cuts(k int, parts []dataplane.Portion, shape []int64) ([]int, error) {
	if !s.m.padded(parts) {
		return nil, nil
	}
	axes, longest := s.m.padding.outputs[k], s.m.lengthIn(&parts[0])
	other := func(d int) bool { return shape[d] != longest }
	if !tensor.Fits(shape, s.m.outputs[k].Shape) || slices.ContainsFunc(axes, other) {
		return nil, fmt.Errorf("output %q: %w: it has the shape %v", s.m.outputs[k].Name, errPadded, tensor.Dims(shape))
	}
	return axes, nil
}

// cut returns the first n of some dimensions of a tensor. The shape is changed, the elements are copied.
func cut(t *tensor.Tensor, axes []int, n int64) {
	whole := slices.Clone(t.Shape)
	size := len(t.Data)
	for _, d := range axes {
		if whole[d] > 0 {
			size = size / int(whole[d]) * int(n)
		}
		t.Shape[d] = n
	}
	from := t.Data
	t.Data = make([]byte, size)
	if size > 0 {
		copyCommon(t.Data, t.Shape, from, whole)
	}
}

// copyCommon copies what two tensors have in common from their first element on. Each has the bytes of its shape.
func copyCommon(to []byte, toShape []int64, from []byte, fromShape []int64) {
	if slices.Equal(toShape[1:], fromShape[1:]) {
		copy(to, from)
		return
	}
	n := min(toShape[0], fromShape[0])
	if n == 0 {
		return
	}
	a, b := int64(len(to))/toShape[0], int64(len(from))/fromShape[0]
	for i := range n {
		copyCommon(to[i*a:(i+1)*a], toShape[1:], from[i*b:(i+1)*b], fromShape[1:])
	}
}
