//go:build cgo

package onnx

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// madeModel is a model that is made by chance: of nodes that the runtime can leave out, of inputs and constants that
// are outputs, of outputs that are given twice.
type madeModel struct {
	rng    *rand.Rand
	dtype  onnxmodel.DType
	moves  bool // elements, and computes nothing with them
	batch  bool
	graph  *onnxmodel.Graph
	values []madeValue
	ints   int // constants of whole numbers
	inputs int // the first of values
}

// madeValue is a tensor of two dimensions: the items and a width, or a constant's of one row.
type madeValue struct {
	name  string
	width int64
	fixed bool // a constant
}

const madeRows = 3 // of inputs without a batch dimension

func newMadeModel(rng *rand.Rand, d onnxmodel.DType, moves bool) *madeModel {
	m := &madeModel{rng: rng, dtype: d, moves: moves, batch: rng.IntN(4) > 0, graph: onnxmodel.NewGraph("made")}
	m.inputs = 1 + rng.IntN(2)
	for k := range m.inputs {
		v := madeValue{name: fmt.Sprintf("x%d", k), width: int64(rng.IntN(4))}
		m.graph.Input(v.name, d, m.declared(&v)...)
		m.values = append(m.values, v)
	}
	if !m.batch && d != onnxmodel.String {
		c := sample("c", tensor.ParseDType(d.String()), 5, 1, 2)
		m.graph.InitializerRaw("c", d, c.Data, 1, 2)
		m.values = append(m.values, madeValue{name: "c", width: 2, fixed: true})
	}
	for k := range rng.IntN(7) {
		m.node(fmt.Sprintf("v%d", k))
	}
	return m
}

// declared is a shape that a file may say for a value: with variable dimensions, or none where there is no batch.
func (m *madeModel) declared(v *madeValue) []int64 {
	shape := []int64{madeRows, v.width}
	if v.fixed {
		shape[0] = 1
	}
	if m.batch {
		shape[0] = onnxmodel.Symbolic
	}
	if m.rng.IntN(5) == 0 {
		shape[1] = onnxmodel.Symbolic
	}
	return shape
}

func (m *madeModel) ints64(values ...int64) string {
	m.ints++
	name := fmt.Sprintf("i%d", m.ints)
	m.graph.InitializerInt64(name, values, int64(len(values)))
	return name
}

// node adds a node whose output has the same items as its inputs.
func (m *madeModel) node(name string) {
	from := m.values[m.rng.IntN(len(m.values))]
	to := madeValue{name: name, width: from.width, fixed: from.fixed}
	in, out := []string{from.name}, []string{name}
	number := !m.moves && m.dtype != onnxmodel.String && m.dtype != onnxmodel.Bool
	switch kind := m.rng.IntN(9); {
	case kind == 0 && number && m.dtype != onnxmodel.Uint8:
		m.graph.Node("Neg", in, out)
	case kind == 1: // all of it, or a part without elements
		to.width = int64(m.rng.IntN(int(from.width) + 1))
		m.graph.Node("Slice", []string{from.name, m.ints64(0), m.ints64(to.width), m.ints64(1)}, out)
	case kind == 2:
		m.graph.Node("Concat", in, out, onnxmodel.AttrInt("axis", 1))
	case kind == 3:
		to.width = 2 * from.width
		m.graph.Node("Concat", []string{from.name, from.name}, out, onnxmodel.AttrInt("axis", 1))
	case kind == 4 && from.width > 0:
		m.graph.Node("Reshape", []string{from.name, m.ints64(-1, from.width)}, out)
	case kind == 5 && number:
		m.graph.Node("Cast", in, out, onnxmodel.AttrInt("to", int64(m.dtype)))
	case kind == 6:
		m.graph.Node("Unsqueeze", []string{from.name, m.ints64(0)}, []string{name + "u"}).
			Node("Squeeze", []string{name + "u", m.ints64(0)}, out)
	case kind == 7 && m.dtype != onnxmodel.String:
		m.graph.Node("Transpose", in, []string{name + "t"}, onnxmodel.AttrInts("perm", 1, 0)).
			Node("Transpose", []string{name + "t"}, out, onnxmodel.AttrInts("perm", 1, 0))
	default:
		m.graph.Node("Identity", in, out)
	}
	m.values = append(m.values, to)
}

// write chooses outputs among all values, inputs and constants too, and stores the model.
func (m *madeModel) write(t *testing.T) (path string, outputs []madeValue) {
	order := m.rng.Perm(len(m.values))
	for _, k := range order[:1+m.rng.IntN(len(order))] {
		v := m.values[k]
		m.graph.Output(v.name, m.dtype, m.declared(&v)...)
		outputs = append(outputs, v)
	}
	file := m.graph.Model(onnxmodel.DefaultOpset, onnxmodel.DefaultIR)
	for _, o := range file.Graph.Output {
		if !slices.ContainsFunc(file.Graph.Input, func(i *pb.ValueInfoProto) bool { return i.Name == o.Name }) &&
			m.rng.IntN(6) == 0 {
			o.Type.GetTensorType().Shape = nil
		}
	}
	path = filepath.Join(t.TempDir(), "model.onnx")
	if err := onnxmodel.Write(path, file); err != nil {
		t.Fatal(err)
	}
	return path, outputs
}

// unbound runs a model as the runtime does by itself: without optimisation, with outputs in its own memory.
func unbound(t *testing.T, path string, inputs []tensor.Tensor, outputs []madeValue) [][]byte {
	t.Helper()
	o, err := ort.NewSessionOptions()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.Destroy() }()
	if err := o.SetGraphOptimizationLevel(ort.GraphOptimizationLevelDisableAll); err != nil {
		t.Fatal(err)
	}
	var in, out []string
	var ins []ort.Value
	for k := range inputs {
		in = append(in, inputs[k].Name)
		ins = append(ins, valueOf(t, &inputs[k]))
	}
	for _, v := range outputs {
		out = append(out, v.name)
	}
	s, err := ort.NewDynamicAdvancedSession(path, in, out, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Destroy() }()
	outs := make([]ort.Value, len(out))
	if err := s.Run(ins, outs); err != nil {
		t.Fatal(err)
	}
	got := make([][]byte, len(outs))
	for k, v := range outs {
		got[k] = plainBytes(t, v)
	}
	for _, v := range append(ins, outs...) {
		_ = v.Destroy()
	}
	return got
}

func valueOf(t *testing.T, x *tensor.Tensor) (v ort.Value) {
	t.Helper()
	var err error
	shape := ort.NewShape(x.Shape...)
	switch x.DType {
	case tensor.Bytes:
		text, made := (*ort.StringTensor)(nil), []string{}
		_ = tensor.EachBytes(x.Data, func(e []byte) { made = append(made, string(e)) })
		if text, err = ort.NewStringTensor(shape); err == nil && len(made) > 0 {
			err = text.SetContents(made)
		}
		v = text
	case tensor.FP32:
		v, err = filled[float32](shape, x.Data)
	case tensor.Int16, tensor.FP16, tensor.BF16:
		v, err = filled[int16](shape, x.Data)
	case tensor.Int64:
		v, err = filled[int64](shape, x.Data)
	case tensor.Uint8:
		v, err = filled[uint8](shape, x.Data)
	case tensor.Bool:
		v, err = filled[bool](shape, x.Data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func filled[T ort.TensorData](shape ort.Shape, data []byte) (ort.Value, error) {
	v, err := ort.NewEmptyTensor[T](shape)
	if err == nil && len(data) > 0 {
		_, err = binary.Decode(data, binary.LittleEndian, v.GetData())
	}
	return v, err
}

// plainBytes are the elements of a value as the protocol has them.
func plainBytes(t *testing.T, v ort.Value) (data []byte) {
	t.Helper()
	var err error
	switch x := v.(type) {
	case *ort.StringTensor:
		var text []string
		if !slices.Contains(x.GetShape(), 0) {
			text, err = x.GetContents()
		}
		for _, e := range text {
			data = tensor.AppendBytes(data, []byte(e))
		}
	case *ort.Tensor[float32]:
		data, err = binary.Append(nil, binary.LittleEndian, x.GetData())
	case *ort.Tensor[int16]:
		data, err = binary.Append(nil, binary.LittleEndian, x.GetData())
	case *ort.Tensor[int64]:
		data, err = binary.Append(nil, binary.LittleEndian, x.GetData())
	case *ort.Tensor[uint8]:
		data = x.GetData()
	case *ort.Tensor[bool]:
		data, err = binary.Append(nil, binary.LittleEndian, x.GetData())
	default:
		t.Fatalf("the runtime gave a %T", v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Answers have the bytes that the runtime gives by itself, whatever memory outputs are bound to, and whichever of them
// are wanted: of inputs and constants that are outputs, of nodes that the runtime leaves out, without elements.
func TestOutputsAreThoseOfAnUnboundRun(t *testing.T) {
	needRuntime(t)
	kinds := []onnxmodel.DType{
		onnxmodel.Float32, onnxmodel.Int64, onnxmodel.Uint8, onnxmodel.Bool, onnxmodel.String, onnxmodel.Float16,
		onnxmodel.BFloat16,
	}
	var seen struct{ inputs, batched, narrowed int }
	for seed := range uint64(longtest.Of(150, 3000)) {
		d := kinds[seed%uint64(len(kinds))]
		half := d == onnxmodel.Float16 || d == onnxmodel.BFloat16
		m := newMadeModel(rand.New(rand.NewPCG(seed, 33)), d, half)
		path, outputs := m.write(t)
		plain := path
		if half { // which the binding gives nobody: the same model, of another type of that size
			plain, _ = newMadeModel(rand.New(rand.NewPCG(seed, 33)), onnxmodel.Int16, true).write(t)
		}
		in := launch(t, 4, 1, Model{Path: path, Example: func(items int) []tensor.Tensor {
			if !m.batch {
				items = madeRows
			}
			return m.given(int64(items))
		}})
		joins := in.loaded[0].m.batched
		if joins {
			seen.batched++
		}
		for round := range 3 {
			b := m.batchOf(joins, outputs, round > 0)
			if err := in.Run(t.Context(), b); err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
			for i := range b.Portions {
				p := &b.Portions[i]
				if p.Wanted != nil {
					seen.narrowed++
				} else if len(p.Outputs) != len(outputs) {
					t.Fatalf("seed %d: %d outputs, want %d", seed, len(p.Outputs), len(outputs))
				}
				if err := compare(p, outputs, unbound(t, plain, p.Inputs, outputs)); err != nil {
					t.Errorf("seed %d, round %d, part %d: %v", seed, round, i, err)
				}
			}
		}
		for _, v := range outputs {
			if v.name[0] == 'x' {
				seen.inputs++
			}
		}
	}
	if seen.inputs < 40 || seen.batched < 30 || seen.narrowed < 100 {
		t.Errorf("too little was seen: %+v", seen)
	}
}

// compare compares a part's outputs with those of the runtime. Those that are wanted are there, in the model's order.
func compare(p *dataplane.Portion, outputs []madeValue, want [][]byte) error {
	at := -1
	for k, v := range outputs {
		if p.Wanted != nil && !slices.Contains(p.Wanted, v.name) {
			continue
		}
		was := at
		at = slices.IndexFunc(p.Outputs, func(x tensor.Tensor) bool { return x.Name == v.name })
		if at <= was {
			return fmt.Errorf("output %q is at %d after %d", v.name, at, was)
		}
		got := &p.Outputs[at]
		if err := got.Validate(); err != nil {
			return err
		}
		if !bytes.Equal(got.Data, want[k]) {
			return fmt.Errorf("output %q is %v, the runtime gives %v", v.name, got.Data, want[k])
		}
	}
	return nil
}

// given are inputs with elements by chance.
func (m *madeModel) given(rows int64) (out []tensor.Tensor) {
	for _, v := range m.values[:m.inputs] {
		out = append(out, sample(v.name, tensor.ParseDType(m.dtype.String()), m.rng.IntN(50), rows, v.width))
	}
	return out
}

// batchOf is a batch of queries with elements by chance, which want some of the outputs, or all.
func (m *madeModel) batchOf(joins bool, outputs []madeValue, some bool) *dataplane.Batch {
	parts := 1
	if joins {
		parts = 1 + m.rng.IntN(3)
	}
	b := &dataplane.Batch{}
	for range parts {
		p := dataplane.Portion{Items: 1}
		rows := int64(madeRows)
		if joins {
			p.Items = 1 + m.rng.IntN(2)
			rows = int64(p.Items)
		}
		p.Inputs = m.given(rows)
		if some {
			p.Wanted = []string{}
			for _, k := range m.rng.Perm(len(outputs))[:1+m.rng.IntN(len(outputs))] {
				p.Wanted = append(p.Wanted, outputs[k].name)
			}
		}
		b.Items += p.Items
		b.Portions = append(b.Portions, p)
	}
	return b
}

// A batch whose outputs would take more memory than there is for a batch is refused as such, so that smaller ones are
// tried; a single item runs, and so does a batch for an output that is small.
func TestOutputsOfABatchAreBoundedByMemory(t *testing.T) {
	needRuntime(t)
	g := onnxmodel.NewGraph("wide").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 1).
		InitializerInt64("times", []int64{1, 1000}, 2).
		Node("Tile", []string{"x", "times"}, []string{"y"}).Node("Neg", []string{"x"}, []string{"z"}).
		Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 1000).Output("z", onnxmodel.Float32, onnxmodel.Symbolic, 1)
	b, err := New(Config{Memory: 3 * 4004, Models: map[serving.VariantID]Model{0: {Path: write(t, g)}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Launch(t.Context(), dataplane.InstanceSpec{ID: 1, BatchLimit: 8, Slots: 1, Cores: 1,
		Variants: []serving.VariantID{0}})
	if err != nil {
		t.Fatalf("a model whose largest batches are too large is not loaded: %v", err)
	}
	defer r.Close()
	for _, x := range []struct {
		items  int64
		wanted []string
		fits   bool
	}{{1, nil, true}, {3, nil, true}, {4, nil, false}, {8, []string{"z"}, true}} {
		batch := one(0, sample("x", tensor.FP32, 1, x.items, 1))
		batch.Portions[0].Wanted = x.wanted
		err := r.Run(t.Context(), batch)
		if x.fits != (err == nil) || !x.fits && !errors.Is(err, dataplane.ErrOutOfMemory) {
			t.Errorf("%d items, outputs %q: %v", x.items, x.wanted, err)
		}
	}
}
