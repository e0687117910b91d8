//go:build cgo

package onnx

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/tensor"
)

func ints32(name string, shape []int64, values ...int32) tensor.Tensor {
	t := tensor.Tensor{Name: name, DType: tensor.Int32, Shape: shape}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, uint32(v))
	}
	return t
}

func element(v int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }

// counter adds its input to a state, and gives the sum plus 100 at a start, 1,000 at an end, and 10,000 times the
// sequence's number.
func counter(t *testing.T) Model {
	t.Helper()
	const n = onnxmodel.Symbolic

	g := onnxmodel.NewGraph("counter").Input("x", onnxmodel.Int32, n, 1).Input("start", onnxmodel.Int32, n, 1).
		Input("end", onnxmodel.Int32, n, 1).Input("ready", onnxmodel.Int32, n, 1).Input("id", onnxmodel.Int32, n, 1).
		Input("was", onnxmodel.Int32, n, 1).
		InitializerRaw("hundred", onnxmodel.Int32, element(100), 1).
		InitializerRaw("thousand", onnxmodel.Int32, element(1000), 1).
		InitializerRaw("myriad", onnxmodel.Int32, element(10000), 1).
		Node("Mul", []string{"x", "ready"}, []string{"taken"}).
		Node("Add", []string{"taken", "was"}, []string{"is"}).
		Node("Mul", []string{"start", "hundred"}, []string{"s"}).
		Node("Mul", []string{"end", "thousand"}, []string{"e"}).
		Node("Mul", []string{"id", "myriad"}, []string{"i"}).
		Node("Add", []string{"is", "s"}, []string{"y1"}).Node("Add", []string{"y1", "e"}, []string{"y2"}).
		Node("Add", []string{"y2", "i"}, []string{"y"}).
		Output("y", onnxmodel.Int32, n, 1).Output("is", onnxmodel.Int32, n, 1)
	control := func(name string, kind pb.ModelSequenceBatching_Control_Kind) repository.Control {
		return repository.Control{
			Name: name, Kind: kind, DType: tensor.Int32, Shape: []int64{-1, 1}, False: element(0), True: element(1),
		}
	}
	return Model{Path: write(t, g), Sequence: &repository.Sequence{
		Controls: []repository.Control{
			control("start", pb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_START),
			control("end", pb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_END),
			control("ready", pb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_READY),
			control("id", pb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_CORRID),
		},
		States: []repository.State{
			{Input: "was", Output: "is", DType: tensor.Int32, Shape: []int64{-1, 1}, Start: []int64{1}},
		},
	}}
}

// Requests of several sequences in one batch are each told of their own, get the state of their own, and their inputs
// stay as they were.
func TestSequencesAreToldAndKeepTheirStates(t *testing.T) {
	in := launch(t, 4, 1, counter(t))
	if i, err := in.b.Interface(0); err != nil || len(i.Inputs) != 1 || len(i.Outputs) != 1 || !i.Batched {
		t.Fatalf("clients see %+v, %v", i, err)
	}
	states := map[string][]byte{}
	step := func(starts, ends bool, values map[string]int32) map[string]int32 {
		b := &dataplane.Batch{}
		names := []string{"7", "9"}
		for _, name := range names {
			b.Items++
			b.Portions = append(b.Portions, dataplane.Portion{
				Items: 1, Inputs: []tensor.Tensor{ints32("x", []int64{1, 1}, values[name])}, Stream: name,
				Begins: starts,
				Ends:   ends, State: states[name],
			})
		}
		if err := in.Run(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		out := map[string]int32{}
		for k, name := range names {
			p := &b.Portions[k]
			if len(p.Inputs) != 1 || len(p.Outputs) != 1 || p.Outputs[0].Name != "y" {
				t.Fatalf("%+v", p)
			}
			states[name], out[name] = p.State, int32(binary.LittleEndian.Uint32(p.Outputs[0].Data))
		}
		return out
	}
	for k, x := range []struct {
		starts, ends bool
		seven, nine  int32
		want7, want9 int32
	}{
		{true, false, 1, 5, 70101, 90105},
		{false, false, 2, 6, 70003, 90011},
		{false, true, 3, 7, 71006, 91018},
	} {
		got := step(x.starts, x.ends, map[string]int32{"7": x.seven, "9": x.nine})
		if got["7"] != x.want7 || got["9"] != x.want9 {
			t.Errorf("step %d: %v, want %d and %d", k, got, x.want7, x.want9)
		}
	}
	bad := &dataplane.Batch{Items: 1, Portions: []dataplane.Portion{
		{Items: 1, Inputs: []tensor.Tensor{ints32("x", []int64{1, 1}, 1)}, Stream: "name"},
	}}
	if err := in.Run(t.Context(), bad); err == nil || !strings.Contains(err.Error(), `sequence "name" is no INT32`) {
		t.Errorf("a name for a number: %v", err)
	}
	bad.Portions[0].Stream, bad.Portions[0].State = "7", []byte{1, 2}
	if err := in.Run(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "same number of items") {
		t.Errorf("a state of another size: %v", err)
	}
}

// Clients see tensors in the shapes of the configuration, whatever the model's own are, with a batch or without one.
func TestTensorsAreReshaped(t *testing.T) {
	const n = onnxmodel.Symbolic
	batched := onnxmodel.NewGraph("r").Input("x", onnxmodel.Int32, n, 2, 2).
		Node("Neg", []string{"x"}, []string{"y"}).Output("y", onnxmodel.Int32, n, 2, 2)
	alone := onnxmodel.NewGraph("r").Input("x", onnxmodel.Int32, 1, 2, n).
		Node("Neg", []string{"x"}, []string{"y"}).Output("y", onnxmodel.Int32, 1, 2, n)
	in := launch(t, 4, 1,
		Model{Path: write(t, batched), Reshapes: map[string]Reshape{
			"x": {Own: []int64{-1, 2, 2}, Seen: []int64{-1, 4}}, "y": {Own: []int64{-1, 2, 2}, Seen: []int64{-1, 1, 4}},
		}},
		Model{Path: write(t, alone), NoBatch: true, Reshapes: map[string]Reshape{
			"x": {Own: []int64{1, 2, -1}, Seen: []int64{2, -1}},
		}})
	for _, c := range []struct {
		variant         int
		items           int
		shape, want     []int64
		values, negated []int32
	}{
		{0, 2, []int64{2, 4}, []int64{2, 1, 4}, []int32{1, 2, 3, 4, 5, 6, 7, 8}, []int32{-1, -2, -3, -4, -5, -6,
			-7, -8}},
		{0, 1, []int64{1, 2, 2}, []int64{1, 1, 4}, []int32{1, 2, 3, 4}, []int32{-1, -2, -3, -4}},
		{1, 1, []int64{2, 3}, []int64{1, 2, 3}, []int32{1, 2, 3, 4, 5, 6}, []int32{-1, -2, -3, -4, -5, -6}},
	} {
		b := &dataplane.Batch{Variant: 0, Items: c.items, Portions: []dataplane.Portion{
			{Items: c.items, Inputs: []tensor.Tensor{ints32("x", c.shape, c.values...)}},
		}}
		if c.variant == 1 {
			b.Variant = 1
		}
		if err := in.Run(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		y := b.Portions[0].Outputs[0]
		if !slices.Equal(y.Shape, c.want) || !bytes.Equal(y.Data, ints32("y", nil, c.negated...).Data) {
			t.Errorf("%v became %v %v", c.shape, y.Shape, y.Data)
		}
		if x := b.Portions[0].Inputs[0]; !slices.Equal(x.Shape, c.shape) {
			t.Errorf("the caller's input has changed to %v", x.Shape)
		}
	}
	bad := &dataplane.Batch{Variant: 0, Items: 1, Portions: []dataplane.Portion{
		{Items: 1, Inputs: []tensor.Tensor{ints32("x", []int64{1, 5}, 1, 2, 3, 4, 5)}},
	}}
	if err := in.Run(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "cannot become") {
		t.Errorf("another number of elements: %v", err)
	}
}
