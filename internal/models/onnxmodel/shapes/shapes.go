// Package shapes finds the shape of every value of an ONNX graph for given shapes of its inputs.
//
// It knows the standard operators that networks are made of, and those that ONNX Runtime puts in their place when it
// fuses them or lays channels out in blocks. Whole numbers that shapes depend on are computed on the way.
package shapes

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

// Tensor is the description of a value as far as it is known.
type Tensor struct {
	DType onnxmodel.DType
	Shape []int64
	// Ints are its elements, where they are whole numbers, few and known before the graph runs; Known says whether.
	Ints  []int64
	Known bool
	// Constant says that the value is one of the file's constants.
	Constant bool
}

// Elements is the number of elements.
func (t *Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Bytes is the size of the value, 0 where elements vary in size.
func (t *Tensor) Bytes() int64 { return t.Elements() * int64(t.DType.Size()) }

// maxKnown bounds the constants whose elements are read. Shapes and axes are short.
const maxKnown = 64

// Infer returns every value of the graph by name. All inputs of the graph must be given, by name. It fails for an
// operator that is not known; the error names it and its node.
func Infer(m *pb.ModelProto, inputs map[string]Tensor) (map[string]*Tensor, error) {
	g := m.GetGraph()
	if g == nil {
		return nil, errors.New("shapes: the model holds no graph")
	}
	values := make(map[string]*Tensor)
	for _, t := range g.Initializer {
		values[t.Name] = constant(t)
	}
	for _, in := range g.Input {
		if values[in.Name] != nil {
			continue
		}
		t, ok := inputs[in.Name]
		if !ok {
			return nil, fmt.Errorf("shapes: graph %q: input %q is not given", g.Name, in.Name)
		}
		values[in.Name] = &t
	}
	block := blockOf(g, values)
	for _, n := range g.Node {
		x := &node{NodeProto: n, block: block, in: make([]*Tensor, len(n.Input))}
		for i, name := range n.Input {
			if name == "" {
				continue
			}
			if x.in[i] = values[name]; x.in[i] == nil {
				return nil, fmt.Errorf("shapes: graph %q: node %s (%s): input %q is not made before it", g.Name, n.Name,
					n.OpType, name)
			}
		}
		rule := rules[n.OpType]
		if rule == nil || !domains[n.Domain] {
			return nil, fmt.Errorf("shapes: graph %q: node %s: operator %s of domain %q is not known here", g.Name,
				n.Name, n.OpType, n.Domain)
		}
		out, err := rule(x)
		if err == nil && slices.ContainsFunc(out, func(t Tensor) bool {
			return slices.Min(append([]int64{0}, t.Shape...)) < 0
		}) {
			err = errors.New("its inputs are too small for it")
		}
		if err != nil {
			return nil, fmt.Errorf("shapes: graph %q: node %s (%s): %w", g.Name, n.Name, n.OpType, err)
		}
		for i, name := range n.Output {
			if name == "" {
				continue
			}
			if i >= len(out) {
				return nil, fmt.Errorf("shapes: graph %q: node %s (%s): output %d is not known here", g.Name, n.Name,
					n.OpType, i)
			}
			values[name] = &out[i]
		}
	}
	return values, nil
}

// domains are the operator sets that are known: the standard one under both its names, and those of ONNX Runtime.
var domains = map[string]bool{"": true, "ai.onnx": true, "com.microsoft": true, nchwc: true}

// nchwc is the operator set of ONNX Runtime's operators on channels in blocks.
const nchwc = "com.microsoft.nchwc"

// blockOf returns the number of channels in a block: 16 on machines with the widest vectors, else 8 or 4. The graph
// does not contain it, but its convolutions' weights are padded to whole blocks.
func blockOf(g *pb.GraphProto, values map[string]*Tensor) int64 {
	block := int64(16)
	for _, n := range g.Node {
		if n.Domain != nchwc || n.OpType != "Conv" || len(n.Input) < 2 {
			continue
		}
		if w := values[n.Input[1]]; w != nil && len(w.Shape) > 0 {
			for block > 1 && w.Shape[0]%block != 0 {
				block /= 2
			}
		}
	}
	return block
}

// constant describes one of the file's constants.
func constant(t *pb.TensorProto) *Tensor {
	out := &Tensor{DType: onnxmodel.DType(t.DataType), Shape: t.Dims, Constant: true}
	if n := out.Elements(); n >= 0 && n <= maxKnown {
		out.Ints, out.Known = ints(t, int(n))
	}
	return out
}
