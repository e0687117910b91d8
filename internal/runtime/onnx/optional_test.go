//go:build cgo

package onnx

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// withConstantInputs stores a graph in a version of the file format, with constants that are inputs as well.
func withConstantInputs(t *testing.T, ir int64, g *onnxmodel.Graph, names ...string) string {
	t.Helper()
	m := g.Model(onnxmodel.DefaultOpset, ir)
	for _, c := range m.Graph.Initializer {
		for _, name := range names {
			if c.Name != name {
				continue
			}
			shape := &pb.TensorShapeProto{}
			for _, n := range c.Dims {
				shape.Dim = append(shape.Dim, &pb.TensorShapeProto_Dimension{
					Value: &pb.TensorShapeProto_Dimension_DimValue{DimValue: n},
				})
			}
			m.Graph.Input = append(m.Graph.Input, &pb.ValueInfoProto{Name: name, Type: &pb.TypeProto{
				Value: &pb.TypeProto_TensorType{TensorType: &pb.TypeProto_Tensor{ElemType: c.DataType, Shape: shape}},
			}})
		}
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := onnxmodel.Write(path, m); err != nil {
		t.Fatal(err)
	}
	return path
}

// scaled gives x*k + c, for each item, where k and c are constants.
func scaled() *onnxmodel.Graph {
	return onnxmodel.NewGraph("scaled").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 2).
		Initializer("k", []float32{2, 3}, 2).Initializer("c", []float32{10}).
		Node("Mul", []string{"x", "k"}, []string{"p"}).Node("Add", []string{"p", "c"}, []string{"y"}).
		Output("p", onnxmodel.Float32, onnxmodel.Symbolic, 2).Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 2)
}

// A run may replace constants that are inputs as well. Queries that do are not joined with others.
func TestConstantsThatAreInputsAreOptional(t *testing.T) {
	in := launch(t, 8, 1, Model{Path: withConstantInputs(t, onnxmodel.DefaultIR, scaled(), "k", "c")})
	if !in.loaded[0].m.batched {
		t.Fatal("the model does not batch")
	}
	x := floats("x", []int64{1, 2}, 1, 1)
	k, c := floats("k", []int64{2}, 5, 7), floats("c", []int64{}, 100)
	odd := append(make([]byte, 1), k.Data...)
	k.Data = odd[1:] // where no float may lie
	part := func(inputs ...tensor.Tensor) dataplane.Portion { return dataplane.Portion{Items: 1, Inputs: inputs} }
	narrow := part(c, x, k)
	narrow.Wanted = []string{"y"}
	for round := range 2 { // the second finds what the first has kept
		b := &dataplane.Batch{Items: 6, Portions: []dataplane.Portion{
			part(x), part(x, k), part(x), part(x, c), part(k, c, x), narrow,
		}}
		if err := in.Run(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		for i, want := range [][]float32{{12, 13}, {15, 17}, {12, 13}, {102, 103}, {105, 107}, {105, 107}} {
			outputs := b.Portions[i].Outputs
			y := outputs[len(outputs)-1]
			if w := floats("y", []int64{1, 2}, want...); y.Name != "y" || string(y.Data) != string(w.Data) {
				t.Errorf("round %d, part %d: got %+v, want %v", round, i, y, want)
			}
		}
	}
	for want, p := range map[string]dataplane.Portion{
		"shape is [3], want [2]":   part(x, floats("k", []int64{3}, 1, 2, 3)),
		"datatype is INT32":        part(x, sample("k", tensor.Int32, 0, 2)),
		"it is given twice":        part(x, k, k),
		"has 2 inputs, the model":  part(x, floats("z", []int64{2}, 1, 2)),
		"8 bytes of data, but":     part(x, tensor.Tensor{Name: "c", DType: tensor.FP32, Data: make([]byte, 8)}),
		`has 0 inputs, the model `: part(k),
	} {
		err := in.Run(t.Context(), &dataplane.Batch{Items: 1, Portions: []dataplane.Portion{p}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Texts may be replaced, too. In files of the first formats every constant is an input, and none is optional.
func TestOptionalTextsAndOldFiles(t *testing.T) {
	g := onnxmodel.NewGraph("old").Input("x", onnxmodel.Float32, 2).Initializer("k", []float32{2, 3}, 2).
		Node("Mul", []string{"x", "k"}, []string{"y"}).Output("y", onnxmodel.Float32, 2)
	in := launch(t, 1, 1, Model{Path: withConstantInputs(t, 3, g, "k")})
	if got := in.loaded[0].m.optional; len(got) != 0 {
		t.Errorf("an old file has optional inputs %v", got)
	}
	chosen := onnxmodel.NewGraph("chosen").Input("x", onnxmodel.String, 1).
		InitializerRaw("first", onnxmodel.Bool, []byte{1}, 1).
		Node("Where", []string{"first", "x", "other"}, []string{"y"}).Output("y", onnxmodel.String, 1)
	m := chosen.Model(onnxmodel.DefaultOpset, onnxmodel.DefaultIR)
	m.Graph.Initializer = append(m.Graph.Initializer, &pb.TensorProto{Name: "other", DataType: int32(onnxmodel.String),
		Dims: []int64{1}, StringData: [][]byte{[]byte("none")}})
	m.Graph.Input = append(m.Graph.Input, &pb.ValueInfoProto{Name: "other", Type: m.Graph.Input[0].Type},
		&pb.ValueInfoProto{Name: "first", Type: &pb.TypeProto{Value: &pb.TypeProto_TensorType{
			TensorType: &pb.TypeProto_Tensor{ElemType: int32(onnxmodel.Bool)}}}})
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := onnxmodel.Write(path, m); err != nil {
		t.Fatal(err)
	}
	text := launch(t, 1, 1, Model{Path: path})
	given := sample("other", tensor.Bytes, 1, 1)
	b := &dataplane.Batch{Items: 1, Portions: []dataplane.Portion{{Items: 1, Inputs: []tensor.Tensor{
		sample("x", tensor.Bytes, 0, 1), given, {Name: "first", DType: tensor.Bool, Shape: []int64{1}, Data: []byte{0}},
	}}}}
	if err := text.Run(t.Context(), b); err != nil || string(b.Portions[0].Outputs[0].Data) != string(given.Data) {
		t.Errorf("got %v, %v, want %q", b.Portions[0].Outputs, err, given.Data)
	}
}
