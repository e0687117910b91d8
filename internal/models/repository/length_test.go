package repository

import (
	"reflect"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/tensor"
)

// The length is the one open dimension of the inputs beside the items, or the pixels of the one input that has several.
// Where the file does not tell which dimension counts, there is none.
func TestLengthOfAModel(t *testing.T) {
	value := func(name string, shape []int64, symbols ...string) onnxmodel.Value {
		return onnxmodel.Value{Name: name, Shape: shape, Symbols: symbols}
	}
	text := []int64{-1, -1}
	for name, c := range map[string]struct {
		file    []onnxmodel.Value
		batched bool
		shown   []int64 // of the first input; nil for the file's
		want    *tensor.Length
	}{
		"text": {[]onnxmodel.Value{value("ids", text, "n", "seq"), value("mask", text, "n", "seq")}, true, nil,
			&tensor.Length{Input: "ids", Axes: []int{1}}},
		"two texts": {[]onnxmodel.Value{value("a", text, "n", "s"), value("b", text, "n", "r")}, true, nil, nil},
		"names unknown": {[]onnxmodel.Value{value("a", text, "", ""), value("b", text, "", "")}, true, nil,
			nil},
		"picture": {[]onnxmodel.Value{value("x", []int64{-1, 3, -1, -1}, "", "", "", "")}, true, nil,
			&tensor.Length{Input: "x", Axes: []int{2, 3}}},
		"picture and size": {[]onnxmodel.Value{
			value("x", []int64{-1, 3, -1, -1}, "n", "", "h", "w"), value("size", []int64{-1, 2}, "n", ""),
		}, true, nil, &tensor.Length{Input: "x", Axes: []int{2, 3}}},
		"square": {[]onnxmodel.Value{value("x", []int64{-1, -1, -1}, "n", "s", "s")}, true, nil,
			&tensor.Length{Input: "x", Axes: []int{1}}},
		"one size":   {[]onnxmodel.Value{value("x", []int64{-1, 3}, "n", "")}, true, nil, nil},
		"configured": {[]onnxmodel.Value{value("x", text, "n", "seq")}, true, []int64{-1, 7}, nil},
		"reshaped":   {[]onnxmodel.Value{value("x", text, "n", "seq")}, true, []int64{-1, 7, -1}, nil},
		"without items": {[]onnxmodel.Value{value("x", []int64{-1, 80}, "time", "")}, false, nil,
			&tensor.Length{Input: "x", Axes: []int{0}}},
	} {
		var inputs []tensor.Spec
		for _, v := range c.file {
			inputs = append(inputs, tensor.Spec{Name: v.Name, Shape: v.Shape})
		}
		if c.shown != nil {
			inputs[0].Shape = c.shown
		}
		if got := lengthOf(inputs, c.file, c.batched); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
