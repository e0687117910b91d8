package operators

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/algo/dag"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/shapes"
)

// Graph is a model as the runtime executes it.
type Graph struct {
	model *pb.ModelProto
	// after has for every node the indices of the nodes whose outputs it takes
	after [][]int
}

// Read reads the file of a graph that the runtime wrote.
func Read(path string) (*Graph, error) {
	m, err := onnxmodel.Load(path)
	if err != nil {
		return nil, err
	}
	g := &Graph{model: m, after: make([][]int, len(m.Graph.Node))}
	maker := make(map[string]int)
	for i, n := range m.Graph.Node {
		for _, in := range n.Input {
			if at, ok := maker[in]; ok && in != "" {
				g.after[i] = append(g.after[i], at)
			}
		}
		for _, out := range n.Output {
			maker[out] = i
		}
	}
	return g, nil
}

// BatchGraph is a graph at one batch size.
type BatchGraph struct {
	Operators []Operator
	// Inputs and Outputs are those of the model.
	Inputs, Outputs []Operand
	Batched         bool // their first dimensions count items
}

// Batch returns the graph for a batch of items. The open first dimension of every input is items, other open dimensions
// are 1. It returns an error when shapes cannot be inferred, and for more than one item when the graph has no batch
// dimension.
func (g *Graph) Batch(items int) (*BatchGraph, error) {
	given := make(map[string]shapes.Tensor)
	constant := make(map[string]bool)
	for _, t := range g.model.Graph.Initializer {
		constant[t.Name] = true
	}
	for _, in := range g.model.Graph.Input {
		t := in.GetType().GetTensorType()
		x := shapes.Tensor{DType: onnxmodel.DType(t.GetElemType())}
		for i, d := range t.GetShape().GetDim() {
			n := int64(1)
			if fixed, ok := d.Value.(*pb.TensorShapeProto_Dimension_DimValue); ok {
				n = fixed.DimValue
			} else if i == 0 {
				n = int64(items)
			}
			x.Shape = append(x.Shape, n)
		}
		given[in.Name] = x
	}
	values, err := shapes.Infer(g.model, given)
	if err != nil {
		return nil, err
	}
	operand := func(name string) Operand {
		if name == "" {
			return Operand{Absent: true}
		}
		t := values[name]
		o := Operand{DType: t.DType, Shape: t.Shape, Constant: constant[name]}
		if t.Known && o.Constant {
			o.Ints = t.Ints
		}
		return o
	}
	at := &BatchGraph{Batched: g.batched(constant)}
	if !at.Batched && items != 1 {
		return nil, fmt.Errorf("operators: graph %q: it has no batch dimension, and takes one item, not %d",
			g.model.Graph.Name, items)
	}
	for _, in := range g.model.Graph.Input {
		if !constant[in.Name] {
			at.Inputs = append(at.Inputs, operand(in.Name))
		}
	}
	for _, out := range g.model.Graph.Output {
		at.Outputs = append(at.Outputs, operand(out.Name))
	}
	for _, n := range g.model.Graph.Node {
		op := Operator{Node: n, Opset: g.opset(n.Domain)}
		for _, in := range n.Input {
			op.Inputs = append(op.Inputs, operand(in))
		}
		at.Operators = append(at.Operators, op)
	}
	at.setFootprint(func(i int) int64 {
		var n int64
		for _, out := range g.model.Graph.Node[i].Output {
			if out != "" {
				n += values[out].Bytes()
			}
		}
		return n
	})
	return at, nil
}

// setFootprint sets the footprint of operators: all weights, and the most data that lies between two operators. outputs
// returns the bytes that an operator writes, by index.
func (at *BatchGraph) setFootprint(outputs func(int) int64) {
	var weights, between int64
	for i := range at.Operators {
		o := &at.Operators[i]
		here := outputs(i)
		for k := range o.Inputs {
			if !o.Inputs[k].Constant && !o.Inputs[k].Absent {
				here += o.Inputs[k].Bytes()
			}
		}
		weights, between = weights+o.weights(), max(between, here)
	}
	among := int64(math.Exp2(math.Round(2*math.Log2(float64(max(weights+between, 1)))) / 2))
	for i := range at.Operators {
		if at.Operators[i].weights() > negligibleWeights {
			at.Operators[i].Footprint = min(max(among, minFootprint), maxFootprint)
		}
	}
}

// Limits of Footprint: all caches hold less than the first; a larger one than the second makes no difference.
const (
	minFootprint = 256 << 10
	maxFootprint = 16 << 20
)

// batched reports whether the first dimension of every input and output is open.
func (g *Graph) batched(constant map[string]bool) bool {
	for _, v := range slices.Concat(g.model.Graph.Input, g.model.Graph.Output) {
		dims := v.GetType().GetTensorType().GetShape().GetDim()
		if constant[v.Name] {
			continue
		}
		if len(dims) == 0 {
			return false
		}
		if _, fixed := dims[0].Value.(*pb.TensorShapeProto_Dimension_DimValue); fixed {
			return false
		}
	}
	return true
}

func (g *Graph) opset(domain string) int64 {
	for _, o := range g.model.OpsetImport {
		if o.Domain == domain || domain == "" && o.Domain == "ai.onnx" {
			return o.Version
		}
	}
	return 0
}

// Fold decomposes the graph into chains and branches. Leaves are indices of BatchGraph.Operators.
func (g *Graph) Fold() (*dag.Tree, error) {
	t, err := dag.Fold(g.after)
	if err != nil {
		return nil, fmt.Errorf("operators: graph %q: %w", g.model.Graph.Name, err)
	}
	return t, nil
}

func digest(m proto.Message) string {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return "?"
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
