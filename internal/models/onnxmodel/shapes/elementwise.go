package shapes

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// sameShape is the rule of operators whose output has the first input's shape.
func sameShape(n *node, x *Tensor) ([]Tensor, error) {
	out := Tensor{DType: x.DType, Shape: x.Shape}
	if n.OpType == "Identity" {
		out.Ints, out.Known = x.Ints, x.Known
	}
	return []Tensor{out}, nil
}

// broadcastShape returns the shape that two shapes are broadcast to.
func broadcastShape(a, b []int64) ([]int64, error) {
	out := make([]int64, max(len(a), len(b)))
	for i := range out {
		x, y := int64(1), int64(1)
		if k := i - len(out) + len(a); k >= 0 {
			x = a[k]
		}
		if k := i - len(out) + len(b); k >= 0 {
			y = b[k]
		}
		switch {
		case x == y || y == 1:
			out[i] = x
		case x == 1:
			out[i] = y
		default:
			return nil, fmt.Errorf("shapes %v and %v do not fit together", a, b)
		}
	}
	return out, nil
}

func broadcast(n *node) ([]Tensor, error) {
	out, err := n.input(0)
	if err != nil {
		return nil, err
	}
	sum := Tensor{DType: out.DType, Shape: slices.Clone(out.Shape)}
	for i := range n.in {
		x, err := n.input(i)
		if err == nil {
			sum.Shape, err = broadcastShape(sum.Shape, x.Shape)
		}
		if err != nil {
			return nil, err
		}
	}
	sum.Ints, sum.Known = n.arithmetic(sum.Elements())
	return []Tensor{sum}, nil
}

// arithmetic computes the elements of a result that shapes may depend on; ok is false when they are not known.
func (n *node) arithmetic(elements int64) ([]int64, bool) {
	if len(n.in) != 2 || !n.in[0].Known || !n.in[1].Known || elements > maxKnown {
		return nil, false
	}
	a, b := n.in[0].Ints, n.in[1].Ints
	if int64(len(a)) != elements && len(a) != 1 || int64(len(b)) != elements && len(b) != 1 {
		return nil, false
	}
	out := make([]int64, elements)
	for i := range out {
		x, y := a[i%len(a)], b[i%len(b)]
		switch n.OpType {
		case "Add":
			out[i] = x + y
		case "Sub":
			out[i] = x - y
		case "Mul":
			out[i] = x * y
		case "Div":
			if y == 0 {
				return nil, false
			}
			out[i] = x / y
		default:
			return nil, false
		}
	}
	return out, true
}

func compare(n *node) ([]Tensor, error) {
	out, err := broadcast(n)
	if err == nil {
		out[0] = Tensor{DType: onnxmodel.Bool, Shape: out[0].Shape}
	}
	return out, err
}

func where(n *node) ([]Tensor, error) {
	x, err := n.input(1)
	if err != nil {
		return nil, err
	}
	out, err := broadcast(n)
	if err == nil {
		out[0].DType = x.DType
	}
	return out, err
}

func reduce(n *node, x *Tensor) ([]Tensor, error) {
	list, err := n.list("axes", 1)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		if n.int("noop_with_empty_axes", 0) != 0 {
			return sameShape(n, x)
		}
		for i := range x.Shape {
			list = append(list, int64(i))
		}
	}
	gone, err := axes(list, len(x.Shape))
	return single(Tensor{DType: x.DType, Shape: removeDims(x.Shape, gone, n.int("keepdims", 1) != 0)}, err)
}

// removeDims removes dimensions or, with keep, makes them 1.
func removeDims(shape []int64, gone []int, keep bool) []int64 {
	out := []int64{}
	for i, d := range shape {
		switch {
		case !slices.Contains(gone, i):
			out = append(out, d)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

func argmax(n *node, x *Tensor) ([]Tensor, error) {
	k, err := axis(n.int("axis", 0), len(x.Shape))
	return single(Tensor{DType: onnxmodel.Int64, Shape: removeDims(x.Shape, []int{k}, n.int("keepdims", 1) != 0)}, err)
}
