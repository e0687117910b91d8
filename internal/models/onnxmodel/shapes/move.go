package shapes

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

func concat(n *node, x *Tensor) ([]Tensor, error) {
	k, err := axis(n.int("axis", 0), len(x.Shape))
	if err != nil {
		return nil, err
	}
	out := Tensor{DType: x.DType, Shape: slices.Clone(x.Shape), Known: true}
	out.Shape[k] = 0
	for i := range n.in {
		t, err := n.ranked(i, len(x.Shape))
		if err != nil {
			return nil, err
		}
		out.Shape[k] += t.Shape[k]
		out.Ints, out.Known = append(out.Ints, t.Ints...), out.Known && t.Known && len(x.Shape) == 1
	}
	return []Tensor{out}, nil
}

// reshape takes 0 for the input's dimension at the same index, unless allowzero is set, and -1 for the remaining
// elements.
func reshape(n *node, x *Tensor) ([]Tensor, error) {
	want, err := n.list("shape", 1)
	if err != nil {
		return nil, err
	}
	shape, rest, product := slices.Clone(want), -1, int64(1)
	for i, d := range shape {
		switch {
		case d == 0 && n.int("allowzero", 0) == 0:
			if i >= len(x.Shape) {
				return nil, fmt.Errorf("shape %v has no dimension %d to keep", x.Shape, i)
			}
			shape[i] = x.Shape[i]
		case d == -1:
			rest = i
			continue
		}
		product *= shape[i]
	}
	if rest >= 0 && product > 0 {
		shape[rest] = x.Elements() / product
		product *= shape[rest]
	}
	if product != x.Elements() {
		return nil, fmt.Errorf("shape %v cannot become %v", x.Shape, want)
	}
	return []Tensor{{DType: x.DType, Shape: shape, Ints: x.Ints, Known: x.Known}}, nil
}

func transpose(n *node, x *Tensor) ([]Tensor, error) {
	perm := n.ints("perm")
	if perm == nil {
		for i := range x.Shape {
			perm = append(perm, int64(len(x.Shape)-1-i))
		}
	}
	if len(perm) != len(x.Shape) {
		return nil, fmt.Errorf("perm %v does not fit shape %v", perm, x.Shape)
	}
	out := make([]int64, len(perm))
	for i, p := range perm {
		k, err := axis(p, len(x.Shape))
		if err != nil {
			return nil, err
		}
		out[i] = x.Shape[k]
	}
	return []Tensor{{DType: x.DType, Shape: out}}, nil
}

func flatten(n *node, x *Tensor) ([]Tensor, error) {
	at := n.int("axis", 1)
	if at < 0 {
		at += int64(len(x.Shape))
	}
	if at < 0 || at > int64(len(x.Shape)) {
		return nil, fmt.Errorf("axis %d does not exist in shape %v", at, x.Shape)
	}
	front, back := Tensor{Shape: x.Shape[:at]}, Tensor{Shape: x.Shape[at:]}
	return []Tensor{{DType: x.DType, Shape: []int64{front.Elements(), back.Elements()}}}, nil
}

func squeeze(n *node, x *Tensor) ([]Tensor, error) {
	list, err := n.list("axes", 1)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		for i, d := range x.Shape {
			if d == 1 {
				list = append(list, int64(i))
			}
		}
	}
	gone, err := axes(list, len(x.Shape))
	return single(Tensor{DType: x.DType, Shape: removeDims(x.Shape, gone, false), Ints: x.Ints, Known: x.Known}, err)
}

func unsqueeze(n *node, x *Tensor) ([]Tensor, error) {
	list, err := n.list("axes", 1)
	if err != nil {
		return nil, err
	}
	at, err := axes(list, len(x.Shape)+len(list))
	if err != nil {
		return nil, err
	}
	shape := slices.Clone(x.Shape)
	for _, k := range at {
		if k > len(shape) {
			return nil, fmt.Errorf("axes %v do not fit shape %v", list, x.Shape)
		}
		shape = slices.Insert(shape, k, 1)
	}
	return []Tensor{{DType: x.DType, Shape: shape, Ints: x.Ints, Known: x.Known}}, nil
}

func split(n *node, x *Tensor) ([]Tensor, error) {
	k, err := axis(n.int("axis", 0), len(x.Shape))
	if err != nil {
		return nil, err
	}
	sizes, err := n.list("split", 1)
	if err != nil {
		return nil, err
	}
	if len(sizes) == 0 {
		// Parts are equal, but for the last where the number of parts does not divide the size.
		parts := int64(len(n.Output))
		part := (x.Shape[k] + parts - 1) / parts
		for left := x.Shape[k]; left > 0; left -= part {
			sizes = append(sizes, min(part, left))
		}
	}
	out := make([]Tensor, len(sizes))
	for i, size := range sizes {
		out[i] = Tensor{DType: x.DType, Shape: slices.Clone(x.Shape)}
		out[i].Shape[k] = size
	}
	return out, nil
}

func slice(n *node, x *Tensor) ([]Tensor, error) {
	var lists [4][]int64 // starts, ends, axes, steps
	var err error
	for i, name := range []string{"starts", "ends", "axes", "steps"} {
		if lists[i], err = n.list(name, i+1); err != nil {
			return nil, err
		}
	}
	starts, ends, which, steps := lists[0], lists[1], lists[2], lists[3]
	out := Tensor{DType: x.DType, Shape: slices.Clone(x.Shape)}
	if len(ends) != len(starts) || which != nil && len(which) != len(starts) || steps != nil &&
		len(steps) != len(starts) {
		return nil, fmt.Errorf("its starts %v, ends %v, axes %v and steps %v differ in number", starts, ends, which,
			steps)
	}
	for i := range starts {
		k, step := i, int64(1)
		if which != nil {
			if k, err = axis(which[i], len(x.Shape)); err != nil {
				return nil, err
			}
		}
		if steps != nil {
			step = steps[i]
		}
		if k >= len(x.Shape) || step == 0 {
			return nil, fmt.Errorf("starts %v and steps %v do not fit shape %v", starts, steps, x.Shape)
		}
		from, count := sliceRange(starts[i], ends[i], step, x.Shape[k])
		if x.Known && len(x.Shape) == 1 {
			out.Known = true
			for j := range count {
				out.Ints = append(out.Ints, x.Ints[from+j*step])
			}
		}
		out.Shape[k] = count
	}
	return []Tensor{out}, nil
}

// sliceRange returns the first index of a slice of a dimension and its number of elements.
func sliceRange(start, end, step, size int64) (from, count int64) {
	if start < 0 {
		start += size
	}
	if end < 0 {
		end += size
	}
	if step > 0 {
		from, end = min(max(start, 0), size), min(max(end, 0), size)
		return from, max(0, (end-from+step-1)/step)
	}
	from, end = min(max(start, -1), size-1), min(max(end, -1), size-1)
	return from, max(0, (end-from+step+1)/step)
}

func gather(n *node) ([]Tensor, error) {
	x, err := n.ranked(0, 1)
	if err != nil {
		return nil, err
	}
	at, err := n.input(1)
	if err != nil {
		return nil, err
	}
	k, err := axis(n.int("axis", 0), len(x.Shape))
	if err != nil {
		return nil, err
	}
	out := Tensor{DType: x.DType, Shape: slices.Concat(x.Shape[:k], at.Shape, x.Shape[k+1:])}
	if x.Known && at.Known && len(x.Shape) == 1 {
		out.Known = true
		for _, i := range at.Ints {
			j, err := axis(i, len(x.Ints))
			if err != nil {
				return nil, err
			}
			out.Ints = append(out.Ints, x.Ints[j])
		}
	}
	return []Tensor{out}, nil
}

func expand(n *node, x *Tensor) ([]Tensor, error) {
	to, err := n.known(1)
	if err != nil {
		return nil, err
	}
	shape, err := broadcastShape(x.Shape, to)
	return single(Tensor{DType: x.DType, Shape: shape}, err)
}

func tile(n *node, x *Tensor) ([]Tensor, error) {
	times, err := n.known(1)
	if err != nil || len(times) != len(x.Shape) {
		return nil, fmt.Errorf("repeats %v do not fit shape %v (%w)", times, x.Shape, err)
	}
	shape := slices.Clone(x.Shape)
	for i := range shape {
		shape[i] *= times[i]
	}
	return []Tensor{{DType: x.DType, Shape: shape}}, nil
}

func pad(n *node, x *Tensor) ([]Tensor, error) {
	pads, err := n.list("pads", 1)
	if err != nil {
		return nil, err
	}
	if len(pads) != 2*len(x.Shape) {
		return nil, fmt.Errorf("pads %v do not fit shape %v", pads, x.Shape)
	}
	shape := slices.Clone(x.Shape)
	for i := range shape {
		shape[i] += pads[i] + pads[i+len(shape)]
	}
	return []Tensor{{DType: x.DType, Shape: shape}}, nil
}

func shapeOf(n *node, x *Tensor) ([]Tensor, error) {
	rank := int64(len(x.Shape))
	from, count := sliceRange(n.int("start", 0), n.int("end", rank), 1, rank)
	return []Tensor{
		{DType: onnxmodel.Int64, Shape: []int64{count}, Ints: slices.Clone(x.Shape[from : from+count]), Known: true},
	}, nil
}

func constantNode(n *node) ([]Tensor, error) {
	switch {
	case n.attr("value") != nil:
		return []Tensor{*constant(n.attr("value").T)}, nil
	case n.attr("value_int") != nil:
		return []Tensor{
			{
				DType: onnxmodel.Int64, Shape: []int64{}, Ints: []int64{n.int("value_int", 0)}, Known: true,
				Constant: true,
			},
		}, nil
	case n.attr("value_ints") != nil:
		v := n.ints("value_ints")
		return []Tensor{
			{DType: onnxmodel.Int64, Shape: []int64{int64(len(v))}, Ints: v, Known: true, Constant: true},
		}, nil
	case n.attr("value_float") != nil:
		return []Tensor{{DType: onnxmodel.Float32, Shape: []int64{}, Constant: true}}, nil
	}
	return nil, fmt.Errorf("its value is neither a tensor nor a number")
}

func constantOfShape(n *node) ([]Tensor, error) {
	shape, err := n.known(0)
	d := onnxmodel.Float32
	if a := n.attr("value"); a != nil && a.T != nil {
		d = onnxmodel.DType(a.T.DataType)
	}
	return single(Tensor{DType: d, Shape: shape}, err)
}

func cast(n *node, x *Tensor) ([]Tensor, error) {
	out := Tensor{DType: onnxmodel.DType(n.int("to", 0)), Shape: x.Shape}
	if out.DType == onnxmodel.Int64 || out.DType == onnxmodel.Int32 {
		out.Ints, out.Known = x.Ints, x.Known
	}
	return []Tensor{out}, nil
}
