package config

import (
	"reflect"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/tensor"
)

// The length of a variant's queries is what the file says, else what follows from the model. Queries of different
// lengths are padded where the model has the mask that the file names.
func TestLengthOfAVariant(t *testing.T) {
	root := t.TempDir()
	model(t, root, "plain/1", -1, 3)
	model(t, root, "open/1", -1, -1)
	write(t, root, "models/text/1/model.onnx", "")
	g := onnxmodel.NewGraph("g").Input("seen", onnxmodel.Int64, -1, -1).Node("Neg", []string{"seen"}, []string{"y"})
	if err := g.Output("y", onnxmodel.Int64, -1, -1).Write(root + "/models/text/1/model.onnx"); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]struct {
		length *tensor.Length
		pads   bool
	}{
		"{name: plain}": {},
		"{name: open}":  {length: &tensor.Length{Input: "input", Axes: []int{1}}},
		"{name: plain, length: {input: input, axes: [1]}}": {length: &tensor.Length{Input: "input", Axes: []int{1}}},
		"{name: text}":             {length: &tensor.Length{Input: "seen", Axes: []int{1}}},
		"{name: text, mask: seen}": {length: &tensor.Length{Input: "seen", Axes: []int{1}}, pads: true},
	} {
		w, err := resolve(t, root, localHead+"apps:\n  - {name: a, slo: {latency: 1s}, variants: ["+text+"]}\n")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := w.Variants[0].Length; !reflect.DeepEqual(got, want.length) || w.Spec.Variants[0].Pads != want.pads {
			t.Errorf("%s: length %+v, pads %v; want %+v", text, got, w.Spec.Variants[0].Pads, want)
		}
	}
}
