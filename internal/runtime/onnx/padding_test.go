//go:build cgo

package onnx

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

const (
	open       = onnxmodel.Symbolic
	vocabulary = 50
	maskName   = repository.MaskName
)

// encoder is a small text encoder with weights drawn from r: embedding, layers of attention that leave out what the
// mask does, and the mean of what is there. The outputs have the length twice, once and not at all.
func encoder(r *rand.Rand, mask onnxmodel.DType, width int64, layers int) *onnxmodel.Graph {
	g := onnxmodel.NewGraph("encoder").
		Input("input_ids", onnxmodel.Int64, open, open).Input(maskName, mask, open, open).
		Initializer("one", []float32{1}).Initializer("far", []float32{1e4}).
		InitializerInt64("at1", []int64{1}, 1).InitializerInt64("at2", []int64{2}, 1)
	weights := func(name string, dims ...int64) string {
		values := make([]float32, dims[0]*dims[1])
		for i := range values {
			values[i] = float32(r.NormFloat64() / math.Sqrt(float64(dims[1])))
		}
		g.Initializer(name, values, dims...)
		return name
	}
	g.Node("Gather", []string{weights("words", vocabulary, width), "input_ids"}, []string{"x0"}).
		Node("Cast", []string{maskName}, []string{"there"}, onnxmodel.AttrInt("to", int64(onnxmodel.Float32))).
		Node("Sub", []string{"there", "one"}, []string{"gone"}).
		Node("Mul", []string{"gone", "far"}, []string{"low"}).
		Node("Unsqueeze", []string{"low", "at1"}, []string{"lows"})
	x := "x0"
	for k := range layers {
		n := func(what string) string { return fmt.Sprintf("%s%d", what, k+1) }
		for _, part := range []string{"q", "k", "v"} {
			g.Node("MatMul", []string{x, weights(n("w"+part), width, width)}, []string{n(part)})
		}
		g.Node("Transpose", []string{n("k")}, []string{n("kt")}, onnxmodel.AttrInts("perm", 0, 2, 1)).
			Node("MatMul", []string{n("q"), n("kt")}, []string{n("s")}).
			Node("Add", []string{n("s"), "lows"}, []string{n("masked")}).
			Node("Softmax", []string{n("masked")}, []string{n("p")}, onnxmodel.AttrInt("axis", -1)).
			Node("MatMul", []string{n("p"), n("v")}, []string{n("a")}).
			Node("Tanh", []string{n("a")}, []string{n("t")}).
			Node("Add", []string{x, n("t")}, []string{n("x")})
		x = n("x")
	}
	return g.Node("Identity", []string{x}, []string{"hidden"}).
		Node("Identity", []string{"p1"}, []string{"attention"}).
		Node("Unsqueeze", []string{"there", "at2"}, []string{"weight"}).
		Node("Mul", []string{x, "weight"}, []string{"kept"}).
		Node("ReduceSum", []string{"kept", "at1"}, []string{"sum"}, onnxmodel.AttrInt("keepdims", 0)).
		Node("ReduceSum", []string{"there", "at1"}, []string{"count"}).
		Node("Div", []string{"sum", "count"}, []string{"pooled"}).
		Output("hidden", onnxmodel.Float32, open, open, width).Output("pooled", onnxmodel.Float32, open, width).
		Output("attention", onnxmodel.Float32, open, open, open)
}

// writeNamed stores a graph with names for the dimensions of some of its inputs and outputs.
func writeNamed(t testing.TB, g *onnxmodel.Graph, names map[string][]string) string {
	t.Helper()
	m := g.Model(onnxmodel.DefaultOpset, onnxmodel.DefaultIR)
	for _, v := range slices.Concat(m.Graph.Input, m.Graph.Output) {
		for d, name := range names[v.Name] {
			v.Type.GetTensorType().Shape.Dim[d].Value = &pb.TensorShapeProto_Dimension_DimParam{DimParam: name}
		}
	}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var encoderNames = map[string][]string{"attention": {"N", "D1", "D1"}}

// text is a query of some items and one length. Some of its elements are masked; every item has one that is not.
func text(r *rand.Rand, id int, mask tensor.DType, items, length int64) dataplane.Portion {
	ids := tensor.Tensor{Name: "input_ids", DType: tensor.Int64, Shape: []int64{items, length}}
	there := tensor.Tensor{Name: maskName, DType: mask, Shape: []int64{items, length}}
	for range items {
		certain := r.Int64N(length)
		for k := range length {
			ids.Data = binary.LittleEndian.AppendUint64(ids.Data, r.Uint64N(vocabulary))
			element := make([]byte, mask.Size())
			if k == certain || r.IntN(5) > 0 {
				element[0] = 1
			}
			there.Data = append(there.Data, element...)
		}
	}
	return dataplane.Portion{Query: serving.QueryID(id), Items: int(items), Inputs: []tensor.Tensor{ids, there}}
}

// texts is a batch whose lengths are log-normal around middle.
func texts(r *rand.Rand, mask tensor.DType, n int, middle, spread float64) *dataplane.Batch {
	b := &dataplane.Batch{}
	for i := range n {
		length := max(1, int64(middle*math.Exp(spread*r.NormFloat64())))
		p := text(r, i+1, mask, 1+r.Int64N(3), length)
		b.Items += p.Items
		b.Portions = append(b.Portions, p)
	}
	return b
}

// sameAsAlone compares the answers of a batch with those of its queries alone.
func sameAsAlone(t *testing.T, in *instance, b *dataplane.Batch) {
	t.Helper()
	if err := in.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, p := range b.Portions {
		alone := &dataplane.Batch{Items: p.Items, Portions: []dataplane.Portion{p}}
		alone.Portions[0].Outputs = nil
		if err := in.Run(t.Context(), alone); err != nil {
			t.Fatal(err)
		}
		for k, want := range alone.Portions[0].Outputs {
			got := p.Outputs[k]
			if got.Validate() != nil || got.Name != want.Name || !slices.Equal(got.Shape, want.Shape) {
				t.Fatalf("query %d: %s %v, alone %s %v: %v", p.Query, got.Name, got.Shape, want.Name, want.Shape,
					got.Validate())
			}
			if got.DType != tensor.FP32 && !bytes.Equal(got.Data, want.Data) {
				t.Fatalf("query %d: output %s: %v, alone %v", p.Query, got.Name, got.Data, want.Data)
			}
			for at := 0; got.DType == tensor.FP32 && at < len(got.Data); at += 4 {
				x, y := got.DType.Number(got.Data[at:]), want.DType.Number(want.Data[at:])
				if !(math.Abs(x-y) <= 1e-5) {
					t.Fatalf("query %d: output %s at %d: %v, alone %v", p.Query, got.Name, at/4, x, y)
				}
			}
		}
	}
}

// Answers of encoders do not depend on the queries that they share a batch with, and padding pays.
func TestLengthsShareBatches(t *testing.T) {
	lengths, runs := 0, 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 38))
		kind := []onnxmodel.DType{onnxmodel.Int64, onnxmodel.Bool, onnxmodel.Int32}[seed%3]
		mask := tensor.ParseDType(kind.String())
		path := writeNamed(t, encoder(r, kind, 4<<r.IntN(3), 1+r.IntN(2)), encoderNames)
		in := launch(t, 64, 1, Model{Path: path})
		m := in.loaded[0].m
		if m.padding == nil {
			t.Fatal("not padded")
		}
		for range 4 {
			b := texts(r, mask, 2+r.IntN(12), 12, 0.8)
			different := map[int64]bool{}
			for _, p := range b.Portions {
				different[m.length(&p)] = true
			}
			groups, padding := m.groups(b.Portions), int64(0)
			lengths, runs = lengths+len(different), runs+len(groups)
			for _, g := range groups {
				for _, i := range g {
					less := m.length(&b.Portions[g[0]]) - m.length(&b.Portions[i])
					if padding += int64(b.Portions[i].Items) * less; less < 0 {
						t.Errorf("seed %d: the first of a run is shorter by %d", seed, -less)
					}
				}
			}
			if saved := len(different) - len(groups); padding > serving.RunCost*int64(saved) {
				t.Errorf("seed %d: %d are padding to save %d runs", seed, padding, saved)
			}
			sameAsAlone(t, in, b)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		if m.padding.refused.Load() || !m.padding.proved.Load() {
			t.Errorf("seed %d: refused %t, proved %t", seed, m.padding.refused.Load(), m.padding.proved.Load())
		}
	}
	t.Logf("%d different lengths in %d runs", lengths, runs)
	if 3*runs > 2*lengths {
		t.Errorf("%d different lengths in %d runs: few are joined", lengths, runs)
	}
}

// A model is padded where its mask says which of its tensors have the length, and in no other case.
func TestPaddingFollowsFromNames(t *testing.T) {
	type value = onnxmodel.Value
	of := func(name string, d onnxmodel.DType, dims ...int64) value {
		return value{Name: name, DType: d, Shape: append([]int64{open}, dims...)}
	}
	ids, mask := of("input_ids", onnxmodel.Int64, open), of(maskName, onnxmodel.Int64, open)
	pooled, hidden := of("pooled", onnxmodel.Float32, 4), of("hidden", onnxmodel.Float32, open, 4)
	labels := of("labels", onnxmodel.Int64, open)
	type named map[string][]string
	for name, c := range map[string]struct {
		in     []value
		out    value
		names  named
		padded bool
	}{
		"a mask and what it is for":      {[]value{ids, mask}, hidden, nil, true},
		"an output without the length":   {[]value{ids, mask}, pooled, nil, true},
		"another length":                 {[]value{ids, mask, labels}, hidden, named{"labels": {"N", "M"}}, true},
		"an output of another length":    {[]value{ids, mask, labels}, labels, named{"labels": {"N", "M"}}, true},
		"no mask":                        {[]value{ids}, hidden, nil, false},
		"a mask under another name":      {[]value{ids, of("mask", onnxmodel.Int64, open)}, hidden, nil, false},
		"a mask of numbers to add":       {[]value{ids, of(maskName, onnxmodel.Float32, open)}, pooled, nil, false},
		"a mask of one length":           {[]value{ids, of(maskName, onnxmodel.Int64, 8)}, pooled, nil, false},
		"a mask for each pair":           {[]value{ids, of(maskName, onnxmodel.Int64, open, open)}, pooled, nil, false},
		"a mask of what no input has":    {[]value{ids, mask}, pooled, named{maskName: {"N", "past"}}, false},
		"a length without a name":        {[]value{ids, mask}, pooled, named{maskName: {"N", ""}}, false},
		"a length that counts items":     {[]value{ids, mask}, pooled, named{maskName: {"N", "N"}}, false},
		"an input with the length first": {[]value{ids, mask}, pooled, named{ids.Name: {"D1", "D1"}}, false},
		"an output of a derived length":  {[]value{ids, mask}, hidden, named{"hidden": {"N", "D1/2", ""}}, false},
		"an output of a nameless length": {[]value{ids, mask}, hidden, named{"hidden": {"N", "", ""}}, false},
		"an output with the items twice": {[]value{ids, mask}, hidden, named{"hidden": {"N", "N", ""}}, false},
		"texts of the length":            {[]value{of("text", onnxmodel.String, open), mask, ids}, pooled, nil, false},
	} {
		m := &model{mask: maskName, batched: true}
		file := &onnxmodel.Info{}
		add := func(ports []port, values []value, to *[]value) []port {
			for _, v := range values {
				v.Symbols = c.names[v.Name]
				if v.Symbols == nil {
					v.Symbols = []string{"N", "D1", "D2"}[:len(v.Shape)]
				}
				*to = append(*to, v)
				ports = append(ports, port{Spec: tensor.Spec{Name: v.Name, DType: tensor.ParseDType(v.DType.String()),
					Shape: v.Shape}})
			}
			return ports
		}
		m.inputs, m.outputs = add(nil, c.in, &file.Inputs), add(nil, []value{c.out}, &file.Outputs)
		if got := newPadding(m, file); (got != nil) != c.padded {
			t.Errorf("%s: padded %t", name, got != nil)
		}
	}
}

// A model that does not do what its mask says is found out by its first padded batch, and is not padded from then on.
func TestPaddingThatChangesAnswersIsRefused(t *testing.T) {
	for name, finish := range map[string]func(*onnxmodel.Graph){
		"a mean over padding as well": func(g *onnxmodel.Graph) {
			g.Node("ReduceMean", []string{"hidden"}, []string{"mean"}, onnxmodel.AttrInts("axes", 1)).
				Output("mean", onnxmodel.Float32, open, 1, 8)
		},
		"an output that is longer than its name says": func(g *onnxmodel.Graph) {
			g.Node("Concat", []string{"hidden", "hidden"}, []string{"twice"}, onnxmodel.AttrInt("axis", 1)).
				Output("twice", onnxmodel.Float32, open, open, 8)
		},
		"a count of what is there and of padding": func(g *onnxmodel.Graph) {
			g.Node("Shape", []string{"hidden"}, []string{"shape"}).
				InitializerInt64("where", []int64{1}, 1).Node("Gather", []string{"shape", "where"}, []string{"length"}).
				Node("Mul", []string{"input_ids", "length"}, []string{"counted"}).
				Output("counted", onnxmodel.Int64, open, open)
		},
	} {
		r := rand.New(rand.NewPCG(1, 38))
		g := encoder(r, onnxmodel.Int64, 8, 1)
		finish(g)
		in := launch(t, 64, 1, Model{Path: writeNamed(t, g, encoderNames)})
		m := in.loaded[0].m
		if m.padding == nil {
			t.Fatalf("%s: not tried", name)
		}
		var told []error
		m.tell = func(err error) { told = append(told, err) }
		first := texts(r, tensor.Int64, 6, 12, 0.2)
		for i := range first.Portions {
			first.Portions[i].Wanted = []string{"pooled"} // which is right
		}
		if err := in.Run(t.Context(), first); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !m.padding.refused.Load() || len(told) != 1 || !errors.Is(told[0], errPadded) {
			t.Errorf("%s: refused %t, told %v", name, m.padding.refused.Load(), told)
		}
		b := texts(r, tensor.Int64, 8, 12, 0.2)
		for _, g := range m.groups(b.Portions) {
			for _, i := range g {
				if !m.sameRows(&b.Portions[g[0]], &b.Portions[i], nil) {
					t.Errorf("%s: places %d and %d share a run", name, g[0], i)
				}
			}
		}
		sameAsAlone(t, in, b)
	}
}

// Outputs whose shapes a session learns, and truth values, are cut back; so are those of queries of several rows.
func TestPaddedOutputsOfOtherKinds(t *testing.T) {
	for _, rows := range []int{0, 8} {
		r := rand.New(rand.NewPCG(3, 38))
		g := encoder(r, onnxmodel.Bool, 8, 1).
			Node("Cast", []string{"x0"}, []string{"halves"}, onnxmodel.AttrInt("to", int64(onnxmodel.Float16))).
			Node("Not", []string{maskName}, []string{"absent"}).
			Output("halves", onnxmodel.Float16, open, open, 8).Output("absent", onnxmodel.Bool, open, open)
		in := launch(t, 64, 1, Model{Path: writeNamed(t, g, encoderNames), Rows: rows})
		for range 3 {
			b := texts(r, tensor.Bool, 9, 12, 0.5)
			for i := range b.Portions {
				if rows > 0 {
					b.Items += 1 - b.Portions[i].Items
					b.Portions[i].Items = 1
				}
			}
			sameAsAlone(t, in, b)
		}
		if p := in.loaded[0].m.padding; p.refused.Load() || !p.proved.Load() {
			t.Errorf("%d rows: refused %t, proved %t", rows, p.refused.Load(), p.proved.Load())
		}
	}
}

// A query without anything that is not masked is joined with none of another length.
func TestNothingButPaddingIsNotPadded(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 38))
	in := launch(t, 64, 1, Model{Path: writeNamed(t, encoder(r, onnxmodel.Bool, 4, 1), encoderNames)})
	b := &dataplane.Batch{}
	for i, length := range []int64{10, 9, 10, 9} {
		b.Portions = append(b.Portions, text(r, i, tensor.Bool, 2, length))
	}
	clear(b.Portions[1].Inputs[1].Data[9:]) // its second item
	if got, want := in.loaded[0].m.groups(b.Portions), [][]int{{0, 2, 3}, {1}}; !reflect.DeepEqual(got, want) {
		t.Errorf("runs %v, want %v", got, want)
	}
}

// The example of serving.RunCost.
func TestRunsCostLeast(t *testing.T) {
	lengths := []int64{100, 97, 90, 20, 5}
	parts := slices.Repeat([]dataplane.Portion{{Items: 1}}, len(lengths))
	got, want := split([]int{0, 1, 2, 3, 4}, parts, lengths), [][]int{{0, 1, 2}, {3, 4}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("runs %v, want %v", got, want)
	}
}

// Answers are compared number by number: a score that is masked, of -10000 or less, hides no difference of the others.
func TestAlikeAnswers(t *testing.T) {
	inf := float32(math.Inf(-1))
	for _, x := range []struct {
		a, b []float32
		want bool
	}{
		{[]float32{1, 2, 3}, []float32{1.0005, 2, 2.999}, true},
		{[]float32{1, 2, 1e-9}, []float32{1, 2, -1e-9}, true},
		{[]float32{1, 2, inf}, []float32{1, 2, inf}, true},
		{[]float32{1, 2, inf}, []float32{1, 5, inf}, false},
		{[]float32{1, 2, -1e4}, []float32{1, 5, -1e4}, false},
		{[]float32{1, 2, -math.MaxFloat32}, []float32{1, 5, -math.MaxFloat32}, false},
		{[]float32{1, 2, inf}, []float32{1, 2, -1e4}, false},
		{[]float32{1, 2, float32(math.NaN())}, []float32{1, 2, float32(math.NaN())}, false},
	} {
		of := func(values []float32) *tensor.Tensor {
			data := make([]byte, 0, 4*len(values))
			for _, v := range values {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
			}
			return &tensor.Tensor{DType: tensor.FP32, Shape: []int64{int64(len(values))}, Data: data}
		}
		if got := alike(of(x.a), of(x.b)); got != x.want {
			t.Errorf("%v and %v: alike is %v, want %v", x.a, x.b, got, x.want)
		}
	}
}
