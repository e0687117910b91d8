//go:build cgo

package onnx

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/tensor"
)

// States that grow, and states of strings, are each sequence's own in a batch of several; clients see a state that they
// may see; a sequence starts with what its model says.
func TestStatesOfAnyShape(t *testing.T) {
	const n = onnxmodel.Symbolic
	g := onnxmodel.NewGraph("g").Input("x", onnxmodel.Int32, n, 1).Input("word", onnxmodel.String, n, 1).
		Input("was", onnxmodel.Int32, n, n).Input("words", onnxmodel.String, n, n).
		Node("Concat", []string{"was", "x"}, []string{"is"}, onnxmodel.AttrInt("axis", 1)).
		Node("Concat", []string{"words", "word"}, []string{"said"}, onnxmodel.AttrInt("axis", 1)).
		Node("Identity", []string{"is"}, []string{"y"}).
		Output("y", onnxmodel.Int32, n, n).Output("is", onnxmodel.Int32, n, n).Output("said", onnxmodel.String, n, n)
	in := launch(t, 4, 1, Model{Path: write(t, g), Sequence: &repository.Sequence{States: []repository.State{
		{Input: "was", Output: "is", DType: tensor.Int32, Shape: []int64{-1, -1}, Start: []int64{1}, First: element(7)},
		{
			Input: "words", Output: "said", DType: tensor.Bytes, Shape: []int64{-1, -1}, Start: []int64{1}, Shown: true,
		},
	}}})
	states := map[string][]byte{}
	for k, x := range []struct {
		of   []string // whose requests are in the batch
		x    []int32
		word []string
		y    [][]int32
		said [][]string
	}{
		{[]string{"a"}, []int32{1}, []string{"so"}, [][]int32{{7, 1}}, [][]string{{"", "so"}}},
		{
			[]string{"a", "b"}, []int32{2, 9}, []string{"much", "x"}, [][]int32{{7, 1, 2}, {7, 9}},
			[][]string{{"", "so", "much"}, {"", "x"}},
		},
		{
			[]string{"b", "a"}, []int32{8, 3}, []string{"y", ""}, [][]int32{{7, 9, 8}, {7, 1, 2, 3}},
			[][]string{{"", "x", "y"}, {"", "so", "much", ""}},
		},
	} {
		b := &dataplane.Batch{Items: len(x.of)}
		for i, name := range x.of {
			word := tensor.AppendBytes(nil, []byte(x.word[i]))
			b.Portions = append(b.Portions, dataplane.Portion{
				Items: 1, Stream: name, State: states[name], Inputs: []tensor.Tensor{
					ints32("x", []int64{1, 1}, x.x[i]),
					{Name: "word", DType: tensor.Bytes, Shape: []int64{1, 1}, Data: word},
				},
			})
		}
		some := k == 1 // clients want one output: states are kept all the same
		for i := range b.Portions {
			if some {
				b.Portions[i].Wanted = []string{"y"}
			}
		}
		if err := in.Run(t.Context(), b); err != nil {
			t.Fatalf("step %d: %v", k, err)
		}
		for i, name := range x.of {
			p := &b.Portions[i]
			states[name] = p.State
			if len(p.Outputs) != 2 || p.Outputs[0].Name != "y" || p.Outputs[1].Name != "said" {
				t.Fatalf("step %d: outputs are %+v", k, p.Outputs)
			}
			if want := ints32("", nil, x.y[i]...).Data; !slices.Equal(p.Outputs[0].Data, want) {
				t.Errorf("step %d, %s: y is %v", k, name, p.Outputs[0].Data)
			}
			var said []byte
			for _, w := range x.said[i] {
				said = tensor.AppendBytes(said, []byte(w))
			}
			if !slices.Equal(p.Outputs[1].Data, said) {
				t.Errorf("step %d, %s: said is %q, want %q", k, name, p.Outputs[1].Data, said)
			}
		}
	}
	whole := states["a"]
	for cut := range whole {
		b := &dataplane.Batch{Items: 1, Portions: []dataplane.Portion{{Items: 1, Stream: "a", State: whole[:cut:cut]}}}
		b.Portions[0].Inputs = []tensor.Tensor{
			ints32("x", []int64{1, 1}, 1),
			{Name: "word", DType: tensor.Bytes, Shape: []int64{1, 1}, Data: tensor.AppendBytes(nil, nil)},
		}
		if err := in.Run(t.Context(), b); err == nil || !strings.Contains(err.Error(), "cut short") {
			t.Errorf("a state of %d of %d bytes: %v", cut, len(whole), err)
		}
	}
}
