//go:build cgo && linux

package onnx

import (
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/tensor"
)

// Models that change letters load on a machine without locales, such as a small container.
func TestModelsThatNormaliseText(t *testing.T) {
	needRuntime(t)
	if !exists(plainLocale) || exists(madeLocales) {
		t.Skipf("not run without %s, or with %s", plainLocale, madeLocales)
	}
	path := write(t, onnxmodel.NewGraph("lower").Input("x", onnxmodel.String, 2).
		Node("StringNormalizer", []string{"x"}, []string{"y"}, onnxmodel.AttrString("case_change_action", "LOWER")).
		Output("y", onnxmodel.String, 2))
	text := func(name string, texts ...string) tensor.Tensor {
		x := tensor.Tensor{Name: name, DType: tensor.Bytes, Shape: []int64{int64(len(texts))}}
		for _, s := range texts {
			x.Data = tensor.AppendBytes(x.Data, []byte(s))
		}
		return x
	}
	for range 2 { // the second one finds what the first has found
		in := launch(t, 1, 1, Model{Path: path})
		b := &dataplane.Batch{Items: 1, Portions: []dataplane.Portion{
			{Items: 1, Inputs: []tensor.Tensor{text("x", "MONDAY", "ÄÖÜ")}},
		}}
		if err := in.Run(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if got, want := b.Portions[0].Outputs[0], text("y", "monday", "äöü"); string(got.Data) != string(want.Data) {
			t.Errorf("got %q, want %q", got.Data, want.Data)
		}
	}
}
