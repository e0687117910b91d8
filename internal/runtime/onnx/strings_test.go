//go:build cgo

package onnx

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/tensor"
)

// Strings are any bytes, NUL among them: a picture in a file has hundreds. They pass through a model as they are, alone
// and joined with those of other queries.
func TestStringsKeepTheirBytes(t *testing.T) {
	in := launch(t, 8, 1, Model{Path: write(t, onnxmodel.Identity(onnxmodel.String, -1))})
	elements := []string{
		"", "a\x00b", "\x00", "\x00\x00\xff\xd8\xff\xe0", strings.Repeat("\x00long", 50_000), "plain", "",
	}
	var whole []byte
	b := &dataplane.Batch{}
	for k, e := range elements {
		block := tensor.AppendBytes(nil, []byte(e))
		whole = append(whole, block...)
		b.Items++
		b.Portions = append(b.Portions, dataplane.Portion{Items: 1, Inputs: []tensor.Tensor{
			{Name: "input", DType: tensor.Bytes, Shape: []int64{1}, Data: block},
		}})
		alone := &dataplane.Batch{Items: 1, Portions: []dataplane.Portion{b.Portions[k]}}
		if err := in.Run(t.Context(), alone); err != nil {
			t.Fatal(err)
		}
		if got := alone.Portions[0].Outputs[0].Data; !bytes.Equal(got, block) {
			t.Errorf("%.20q alone became %.30q", e, got)
		}
	}
	if err := in.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for _, p := range b.Portions {
		got = append(got, p.Outputs[0].Data...)
	}
	if !bytes.Equal(got, whole) {
		t.Error("joined strings have changed")
	}
}
