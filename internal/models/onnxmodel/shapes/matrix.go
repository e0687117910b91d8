package shapes

import (
	"fmt"
	"slices"
)

// matmul is the rule of products of matrices, or of stacks of them that are broadcast. FusedMatMul may transpose its
// inputs' last two dimensions, or their first and last but one (transBatch).
func matmul(n *node) ([]Tensor, error) {
	a, err := n.ranked(0, 1)
	if err != nil {
		return nil, err
	}
	b, err := n.ranked(1, 1)
	if err != nil {
		return nil, err
	}
	left, right := turned(n, a.Shape, "A"), turned(n, b.Shape, "B")
	vectorLeft, vectorRight := len(left) == 1, len(right) == 1
	if vectorLeft {
		left = []int64{1, left[0]}
	}
	if vectorRight {
		right = []int64{right[0], 1}
	}
	if left[len(left)-1] != right[len(right)-2] {
		return nil, fmt.Errorf("shapes %v and %v cannot be multiplied", a.Shape, b.Shape)
	}
	stack, err := broadcastShape(left[:len(left)-2], right[:len(right)-2])
	if err != nil {
		return nil, err
	}
	if !vectorLeft {
		stack = append(stack, left[len(left)-2])
	}
	if !vectorRight {
		stack = append(stack, right[len(right)-1])
	}
	return []Tensor{{DType: a.DType, Shape: stack}}, nil
}

func turned(n *node, shape []int64, which string) []int64 {
	out := slices.Clone(shape)
	if r := len(out); r >= 2 {
		if n.int("transBatch"+which, 0) != 0 {
			out = append(append(slices.Clone(out[1:r-1]), out[0]), out[r-1])
		}
		if n.int("trans"+which, 0) != 0 {
			out[r-1], out[r-2] = out[r-2], out[r-1]
		}
	}
	return out
}

func gemm(n *node) ([]Tensor, error) {
	a, err := n.ranked(0, 2)
	if err != nil {
		return nil, err
	}
	b, err := n.ranked(1, 2)
	if err != nil {
		return nil, err
	}
	left, right := turned(n, a.Shape, "A"), turned(n, b.Shape, "B")
	if len(left) != 2 || len(right) != 2 || left[1] != right[0] {
		return nil, fmt.Errorf("shapes %v and %v cannot be multiplied", a.Shape, b.Shape)
	}
	return []Tensor{{DType: a.DType, Shape: []int64{left[0], right[1]}}}, nil
}

// recurrent gives the states of all steps and the last ones; LSTM its cells too.
func recurrent(n *node) ([]Tensor, error) {
	x, err := n.ranked(0, 3)
	if err != nil {
		return nil, err
	}
	w, err := n.ranked(2, 3)
	if err != nil {
		return nil, err
	}
	directions, hidden := w.Shape[0], n.int("hidden_size", w.Shape[2])
	steps, items := x.Shape[0], x.Shape[1]
	all, last := []int64{steps, directions, items, hidden}, []int64{directions, items, hidden}
	if n.int("layout", 0) != 0 {
		steps, items = items, steps
		all, last = []int64{items, steps, directions, hidden}, []int64{items, directions, hidden}
	}
	return []Tensor{{DType: x.DType, Shape: all}, {DType: x.DType, Shape: last}, {DType: x.DType, Shape: last}}, nil
}

// attention is ONNX Runtime's fused self-attention; its weights give queries, keys and values of one width.
func attention(n *node) ([]Tensor, error) {
	x, err := n.ranked(0, 3)
	if err != nil {
		return nil, err
	}
	w, err := n.ranked(1, 2)
	if err != nil {
		return nil, err
	}
	width := w.Shape[1] / 3
	if sizes := n.ints("qkv_hidden_sizes"); len(sizes) == 3 {
		width = sizes[2]
	}
	return []Tensor{{DType: x.DType, Shape: []int64{x.Shape[0], x.Shape[1], width}}}, nil
}
