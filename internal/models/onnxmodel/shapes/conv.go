package shapes

import (
	"fmt"
	"slices"
)

// windows computes how often a window fits into a dimension.
type windows struct {
	kernel, strides, dilations, pads []int64
	auto                             string
	ceil                             bool
}

func (n *node) slideWindows(kernel []int64, dims int) (windows, error) {
	s := windows{kernel: n.ints("kernel_shape"), strides: n.ints("strides"), dilations: n.ints("dilations"),
		pads: n.ints("pads"),
		auto: n.text("auto_pad"), ceil: n.int("ceil_mode", 0) != 0}
	if s.kernel == nil {
		s.kernel = kernel
	}
	fill := func(v []int64, with int64, count int) []int64 {
		if len(v) == 0 {
			return slices.Repeat([]int64{with}, count)
		}
		return v
	}
	s.strides, s.dilations, s.pads = fill(s.strides, 1, dims), fill(s.dilations, 1, dims), fill(s.pads, 0, 2*dims)
	if len(s.kernel) != dims || len(s.strides) != dims || len(s.dilations) != dims || len(s.pads) != 2*dims ||
		slices.Min(s.strides) < 1 {
		return s, fmt.Errorf("its kernel %v, strides %v, dilations %v or pads %v do not fit %d dimensions", s.kernel,
			s.strides, s.dilations, s.pads, dims)
	}
	return s, nil
}

func (s *windows) over(sizes []int64) []int64 {
	out := make([]int64, len(sizes))
	for i, size := range sizes {
		window := (s.kernel[i]-1)*s.dilations[i] + 1
		room := size + s.pads[i] + s.pads[i+len(sizes)] - window
		switch s.auto {
		case "SAME_UPPER", "SAME_LOWER":
			out[i] = (size + s.strides[i] - 1) / s.strides[i]
			continue
		case "VALID":
			room = size - window
		}
		if room < 0 {
			out[i] = -1
			continue
		}
		if s.ceil {
			room += s.strides[i] - 1
		}
		out[i] = room/s.strides[i] + 1
		// A last window that would begin in the padding after the input is left out.
		if s.ceil && (out[i]-1)*s.strides[i] >= size+s.pads[i] {
			out[i]--
		}
	}
	return out
}

func conv(n *node) ([]Tensor, error) {
	x, err := n.ranked(0, 3)
	if err != nil {
		return nil, err
	}
	w, err := n.ranked(1, len(x.Shape))
	if err != nil {
		return nil, err
	}
	s, err := n.slideWindows(w.Shape[2:], len(x.Shape)-2)
	if err != nil {
		return nil, err
	}
	return []Tensor{{DType: x.DType, Shape: append([]int64{x.Shape[0], w.Shape[0]}, s.over(x.Shape[2:])...)}}, nil
}

func pool(n *node) ([]Tensor, error) {
	x, err := n.ranked(0, 3)
	if err != nil {
		return nil, err
	}
	s, err := n.slideWindows(nil, len(x.Shape)-2)
	if err != nil {
		return nil, err
	}
	return []Tensor{{DType: x.DType, Shape: append(slices.Clone(x.Shape[:2]), s.over(x.Shape[2:])...)}}, nil
}

func globalPool(n *node) ([]Tensor, error) {
	x, err := n.ranked(0, 3)
	if err != nil {
		return nil, err
	}
	return []Tensor{
		{DType: x.DType, Shape: append(slices.Clone(x.Shape[:2]), slices.Repeat([]int64{1}, len(x.Shape)-2)...)},
	}, nil
}

// reorderInput gathers channels into blocks, the last one filled up.
func reorderInput(n *node) ([]Tensor, error) {
	x, err := n.ranked(0, 3)
	if err != nil {
		return nil, err
	}
	shape := slices.Clone(x.Shape)
	if n.int("channels_last", 0) != 0 {
		shape = append([]int64{shape[0], shape[len(shape)-1]}, shape[1:len(shape)-1]...)
	}
	shape[1] = (shape[1] + n.block - 1) / n.block * n.block
	return []Tensor{{DType: x.DType, Shape: shape}}, nil
}

func reorderOutput(n *node) ([]Tensor, error) {
	x, err := n.ranked(0, 3)
	if err != nil {
		return nil, err
	}
	shape := slices.Clone(x.Shape)
	shape[1] = n.int("channels", shape[1])
	if n.int("channels_last", 0) != 0 {
		shape = append(append([]int64{shape[0]}, shape[2:]...), shape[1])
	}
	return []Tensor{{DType: x.DType, Shape: shape}}, nil
}
