package server

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/tensor"
)

// mostClasses bounds the elements of an output that are sorted for an item, as Triton does.
const mostClasses = 1_000_000

// classified returns an output as Triton's classification extension has it: for every item the n classes with the
// highest values, the highest first, each as VALUE:INDEX or VALUE:INDEX:LABEL.
func classified(m *Model, t *tensor.Tensor, n int) (tensor.Tensor, error) {
	value, show, err := reader(t)
	if err != nil {
		return tensor.Tensor{}, err
	}
	items, shape := int64(1), []int64{}
	rest := t.Shape
	if m.shownBatched() && len(rest) > 0 {
		items, rest = rest[0], rest[1:]
		shape = append(shape, items)
	}
	classes := int64(1)
	for _, d := range rest {
		classes *= d
	}
	if classes > mostClasses {
		return tensor.Tensor{}, oip.Errorf(oip.Invalid, "", "classification output tensor too large: output %q has %d "+
			"elements for an item, at most %d are sorted", t.Name, classes, mostClasses)
	}
	n = int(min(int64(n), classes))
	out := tensor.Tensor{Name: t.Name, DType: tensor.Bytes, Shape: append(shape, int64(n))}
	labels := m.Labels[t.Name]
	order := make([]int, classes)
	for i := range items {
		first := int(i * classes)
		for k := range order {
			order[k] = k
		}
		slices.SortStableFunc(order, func(a, b int) int {
			x, y := value(first+a), value(first+b)
			switch {
			case x > y || math.IsNaN(y) && !math.IsNaN(x):
				return -1
			case y > x || math.IsNaN(x) && !math.IsNaN(y):
				return 1
			}
			return 0
		})
		for _, k := range order[:n] {
			text := show(first+k) + ":" + strconv.Itoa(k)
			if k < len(labels) {
				text += ":" + labels[k]
			}
			out.Data = tensor.AppendBytes(out.Data, []byte(text))
		}
	}
	return out, nil
}

// reader returns functions that read an element as a number and as text.
func reader(t *tensor.Tensor) (value func(int) float64, show func(int) string, err error) {
	le, d, size := binary.LittleEndian, t.Data, t.DType.Size()
	value = func(k int) float64 { return t.DType.Number(d[size*k:]) }
	switch t.DType {
	case tensor.FP32, tensor.FP64, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Uint8, tensor.Uint16, tensor.Uint32:
	case tensor.Int64:
		show = func(k int) string { return strconv.FormatInt(int64(le.Uint64(d[8*k:])), 10) }
	case tensor.Uint64:
		show = func(k int) string { return strconv.FormatUint(le.Uint64(d[8*k:]), 10) }
	default:
		return nil, nil, oip.Errorf(oip.Invalid, "", "class result not available for output due to unsupported "+
			"type '%s': output %q", t.DType, t.Name)
	}
	switch {
	case show != nil:
	case t.DType == tensor.FP32 || t.DType == tensor.FP64:
		show = func(k int) string { return fmt.Sprintf("%f", value(k)) }
	default:
		show = func(k int) string { return strconv.FormatInt(int64(value(k)), 10) }
	}
	return value, show, nil
}
