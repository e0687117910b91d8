package shapes

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

// node is an operator with its inputs as far as they are known.
type node struct {
	*pb.NodeProto
	in    []*Tensor // nil for one that is left out
	block int64
}

// input returns a required input.
func (n *node) input(i int) (*Tensor, error) {
	if i >= len(n.in) || n.in[i] == nil {
		return nil, fmt.Errorf("input %d is missing", i)
	}
	return n.in[i], nil
}

// ranked returns an input of at least so many dimensions.
func (n *node) ranked(i, dims int) (*Tensor, error) {
	t, err := n.input(i)
	if err == nil && len(t.Shape) < dims {
		err = fmt.Errorf("input %d has shape %v, want at least %d dimensions", i, t.Shape, dims)
	}
	return t, err
}

func (n *node) has(i int) bool { return i < len(n.in) && n.in[i] != nil }

func (n *node) attr(name string) *pb.AttributeProto {
	for _, a := range n.Attribute {
		if a.Name == name {
			return a
		}
	}
	return nil
}

func (n *node) int(name string, otherwise int64) int64 {
	if a := n.attr(name); a != nil {
		return a.I
	}
	return otherwise
}

// ints returns a list, nil when it is not given.
func (n *node) ints(name string) []int64 {
	if a := n.attr(name); a != nil {
		return a.Ints
	}
	return nil
}

func (n *node) text(name string) string {
	if a := n.attr(name); a != nil {
		return string(a.S)
	}
	return ""
}

// known returns the elements of an input that a shape depends on.
func (n *node) known(i int) ([]int64, error) {
	t, err := n.input(i)
	if err != nil {
		return nil, err
	}
	if !t.Known {
		return nil, fmt.Errorf("input %q decides a shape, but is not known before the graph runs", n.Input[i])
	}
	return t.Ints, nil
}

// list is a list that older operator sets have as an attribute and newer ones as an input; nil when it is not given.
func (n *node) list(name string, input int) ([]int64, error) {
	if n.has(input) {
		return n.known(input)
	}
	return n.ints(name), nil
}

// axis counts a dimension from the front.
func axis(a int64, rank int) (int, error) {
	if a < 0 {
		a += int64(rank)
	}
	if a < 0 || a >= int64(max(rank, 1)) {
		return 0, fmt.Errorf("axis %d does not exist in %d dimensions", a, rank)
	}
	return int(a), nil
}

// axes counts dimensions from the front, in ascending order.
func axes(list []int64, rank int) ([]int, error) {
	var out []int
	for _, a := range list {
		k, err := axis(a, rank)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// ints reads whole numbers out of a constant.
func ints(t *pb.TensorProto, n int) ([]int64, bool) {
	out := make([]int64, 0, n)
	switch d := onnxmodel.DType(t.DataType); {
	case d == onnxmodel.Int64 && len(t.RawData) == 8*n:
		for i := range n {
			out = append(out, int64(binary.LittleEndian.Uint64(t.RawData[8*i:])))
		}
	case d == onnxmodel.Int32 && len(t.RawData) == 4*n:
		for i := range n {
			out = append(out, int64(int32(binary.LittleEndian.Uint32(t.RawData[4*i:]))))
		}
	case d == onnxmodel.Int64 && len(t.Int64Data) == n:
		out = append(out, t.Int64Data...)
	case d == onnxmodel.Int32 && len(t.Int32Data) == n:
		for _, v := range t.Int32Data {
			out = append(out, int64(v))
		}
	default:
		return nil, false
	}
	return out, true
}
