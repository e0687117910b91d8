package shapes_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/shapes"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/zoo"
	"github.com/sluice-serving/sluice/internal/runtime/native"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// needRuntime skips a test on a machine without the library, and says how to get it.
func needRuntime(t *testing.T) {
	t.Helper()
	if _, err := native.ONNXRuntime(); err != nil {
		if os.Getenv(native.EnvONNXRuntime) != "" || !errors.Is(err, native.ErrMissing) {
			t.Fatal(err)
		}
		t.Skipf("not run without ONNX Runtime: %v", err)
	}
}

// TestAgainstRuntime makes every inner value of every network an output, runs it, and compares the shapes: of the
// network as it is written and as the runtime makes it.
func TestAgainstRuntime(t *testing.T) {
	needRuntime(t)
	const items = 3
	for _, n := range zoo.Networks() {
		t.Run(n.Name, func(t *testing.T) {
			dir := t.TempDir()
			written, made := filepath.Join(dir, "written.onnx"), filepath.Join(dir, "made.onnx")
			if err := n.Build().Write(written); err != nil {
				t.Fatal(err)
			}
			b, err := onnx.New(onnx.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Optimize(written, made); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{written, made} {
				m, err := onnxmodel.Load(path)
				if err != nil {
					t.Fatal(err)
				}
				compare(t, m, items, filepath.Join(dir, "all.onnx"))
			}
		})
	}
}

// fix gives the open dimensions of the inputs their size.
func fix(m *pb.ModelProto, items int64) (map[string]shapes.Tensor, []tensor.Tensor) {
	given := make(map[string]shapes.Tensor)
	var feed []tensor.Tensor
	for _, in := range m.Graph.Input {
		typ := in.GetType().GetTensorType()
		x := shapes.Tensor{DType: onnxmodel.DType(typ.ElemType)}
		for _, d := range typ.Shape.Dim {
			if _, fixed := d.Value.(*pb.TensorShapeProto_Dimension_DimValue); !fixed {
				d.Value = &pb.TensorShapeProto_Dimension_DimValue{DimValue: items}
			}
			x.Shape = append(x.Shape, d.GetDimValue())
		}
		given[in.Name] = x
		feed = append(feed, tensor.Tensor{
			Name: in.Name, DType: tensor.ParseDType(x.DType.String()), Shape: x.Shape, Data: make([]byte, x.Bytes()),
		})
	}
	return given, feed
}

func compare(t *testing.T, m *pb.ModelProto, items int64, path string) {
	t.Helper()
	given, feed := fix(m, items)
	want, err := shapes.Infer(m, given)
	if err != nil {
		t.Fatal(err)
	}
	m.Graph.Output, m.Graph.ValueInfo = nil, nil
	for _, n := range m.Graph.Node {
		for _, out := range n.Output {
			if x := want[out]; out != "" && len(x.Shape) > 0 {
				m.Graph.Output = append(m.Graph.Output, declare(out, x, len(m.Graph.Output)))
			}
		}
	}
	if err := onnxmodel.Write(path, m); err != nil {
		t.Fatal(err)
	}
	b, err := onnx.New(onnx.Config{
		Models: map[serving.VariantID]onnx.Model{0: {Path: path, AsIs: true, NoBatch: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Launch(t.Context(), dataplane.InstanceSpec{
		Variants: []serving.VariantID{0}, Slots: 1, BatchLimit: 1, Cores: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	batch := &dataplane.Batch{ID: 1, Items: 1, Portions: []dataplane.Portion{{Query: 1, Items: 1, Inputs: feed}}}
	if err := r.Run(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	for _, got := range batch.Portions[0].Outputs {
		if x := want[got.Name]; !slices.Equal(got.Shape, x.Shape) || got.DType != tensor.ParseDType(x.DType.String()) {
			t.Errorf("%s is %s%v, inferred %s%v", got.Name, got.DType, got.Shape, x.DType, x.Shape)
		}
	}
	if len(batch.Portions[0].Outputs) < 3 {
		t.Errorf("only %d values were compared", len(batch.Portions[0].Outputs))
	}
}

// declare makes an output whose dimensions are all open, so that the runtime says what they are.
func declare(name string, x *shapes.Tensor, at int) *pb.ValueInfoProto {
	shape := &pb.TensorShapeProto{}
	for i := range x.Shape {
		shape.Dim = append(shape.Dim, &pb.TensorShapeProto_Dimension{
			Value: &pb.TensorShapeProto_Dimension_DimParam{DimParam: fmt.Sprintf("d%d_%d", at, i)},
		})
	}
	return &pb.ValueInfoProto{
		Name: name, Type: &pb.TypeProto{
			Value: &pb.TypeProto_TensorType{TensorType: &pb.TypeProto_Tensor{ElemType: int32(x.DType), Shape: shape}},
		},
	}
}

// TestShapesComputed follows numbers that a shape depends on: the last two dimensions are made one.
func TestShapesComputed(t *testing.T) {
	g := onnxmodel.NewGraph("computed").Input("x", onnxmodel.Float32, -1, 4, 5, 6).
		InitializerInt64("two", []int64{2}, 1).InitializerInt64("zero", []int64{0}, 1).InitializerInt64("rest",
		[]int64{-1}, 1).
		Node("Shape", []string{"x"}, []string{"shape"}).
		Node("Slice", []string{"shape", "zero", "two"}, []string{"front"}).
		Node("Concat", []string{"front", "rest"}, []string{"to"}, onnxmodel.AttrInt("axis", 0)).
		Node("Reshape", []string{"x", "to"}, []string{"y"}).Output("y", onnxmodel.Float32, -1, 4, -1)
	m := g.Model(onnxmodel.DefaultOpset, onnxmodel.DefaultIR)
	got, err := shapes.Infer(m, map[string]shapes.Tensor{"x": {DType: onnxmodel.Float32, Shape: []int64{7, 4, 5, 6}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{7, 4, 30}; !slices.Equal(got["y"].Shape, want) {
		t.Errorf("y is %v, want %v", got["y"].Shape, want)
	}
}

// TestOperators infers single operators.
func TestOperators(t *testing.T) {
	ints := onnxmodel.AttrInts
	one := onnxmodel.AttrInt
	for _, c := range []struct {
		op    string
		in    [][]int64
		attrs []onnxmodel.Attr
		want  []int64
	}{
		{
			"Conv", [][]int64{{2, 3, 32, 32}, {8, 3, 3, 3}}, []onnxmodel.Attr{
				ints("strides", 2, 2), ints("pads", 1, 1, 1, 1),
			}, []int64{2, 8, 16, 16},
		},
		{
			"Conv", [][]int64{{2, 6, 9}, {6, 1, 3}}, []onnxmodel.Attr{one("group", 6), ints("dilations", 2)},
			[]int64{2, 6, 5},
		},
		{
			"Conv", [][]int64{{2, 3, 7, 7}, {8, 3, 3, 3}}, []onnxmodel.Attr{
				onnxmodel.AttrString("auto_pad", "SAME_UPPER"), ints("strides", 2, 2),
			}, []int64{2, 8, 4, 4},
		},
		{
			"MaxPool", [][]int64{{1, 2, 5, 5}}, []onnxmodel.Attr{
				ints("kernel_shape", 2, 2), ints("strides", 2, 2),
			}, []int64{1, 2, 2, 2},
		},
		{
			"MaxPool", [][]int64{{1, 2, 5, 5}}, []onnxmodel.Attr{
				ints("kernel_shape", 2, 2), ints("strides", 2, 2), one("ceil_mode", 1),
			}, []int64{1, 2, 3, 3},
		},
		{"MatMul", [][]int64{{5, 1, 2, 3}, {4, 3, 6}}, nil, []int64{5, 4, 2, 6}},
		{"MatMul", [][]int64{{3}, {4, 3, 6}}, nil, []int64{4, 6}},
		{"Gemm", [][]int64{{3, 2}, {4, 3}}, []onnxmodel.Attr{one("transA", 1), one("transB", 1)}, []int64{2, 4}},
		{"Add", [][]int64{{2, 1, 4}, {3, 1}}, nil, []int64{2, 3, 4}},
		{"Greater", [][]int64{{2, 4}, {4}}, nil, []int64{2, 4}},
		{"Where", [][]int64{{2, 1}, {4}, {1}}, nil, []int64{2, 4}},
		{"ReduceSum", [][]int64{{2, 3, 4}}, []onnxmodel.Attr{one("keepdims", 0)}, []int64{}},
		{"ReduceMax", [][]int64{{2, 3, 4}}, []onnxmodel.Attr{ints("axes", -1)}, []int64{2, 3, 1}},
		{"ArgMax", [][]int64{{2, 3, 4}}, []onnxmodel.Attr{one("axis", 1), one("keepdims", 0)}, []int64{2, 4}},
		{"Transpose", [][]int64{{2, 3, 4}}, nil, []int64{4, 3, 2}},
		{"Flatten", [][]int64{{2, 3, 4}}, []onnxmodel.Attr{one("axis", -1)}, []int64{6, 4}},
		{"Squeeze", [][]int64{{1, 3, 1}}, nil, []int64{3}},
		{"Unsqueeze", [][]int64{{3, 4}}, []onnxmodel.Attr{ints("axes", 0, -1)}, []int64{1, 3, 4, 1}},
		{"Slice", [][]int64{{10, 4}}, []onnxmodel.Attr{ints("starts", -3), ints("ends", 1000)}, []int64{3, 4}},
		{"Split", [][]int64{{2, 7}}, []onnxmodel.Attr{one("axis", 1), ints("split", 3, 4)}, []int64{2, 3}},
		{"Pad", [][]int64{{2, 3}}, []onnxmodel.Attr{ints("pads", 0, 1, 1, 2)}, []int64{3, 6}},
		{"Gather", [][]int64{{9, 4}, {2, 3}}, []onnxmodel.Attr{one("axis", 0)}, []int64{2, 3, 4}},
		{
			"GRU", [][]int64{{5, 2, 8}, {2, 9, 8}, {2, 9, 3}}, []onnxmodel.Attr{one("hidden_size", 3)},
			[]int64{5, 2, 2, 3},
		},
	} {
		got, err := infer(c.op, c.in, c.attrs...)
		if err != nil || !slices.Equal(got.Shape, c.want) {
			t.Errorf("%s of %v gives %v, %v; want %v", c.op, c.in, got, err, c.want)
		}
	}
}

// infer runs one operator on inputs of the given shapes.
func infer(op string, in [][]int64, attrs ...onnxmodel.Attr) (*shapes.Tensor, error) {
	g := onnxmodel.NewGraph("one")
	given := make(map[string]shapes.Tensor)
	var names []string
	for i, s := range in {
		name := fmt.Sprintf("x%d", i)
		names = append(names, name)
		g.Input(name, onnxmodel.Float32, s...)
		given[name] = shapes.Tensor{DType: onnxmodel.Float32, Shape: s}
	}
	g.Node(op, names, []string{"y"}, attrs...)
	got, err := shapes.Infer(g.Model(onnxmodel.DefaultOpset, onnxmodel.DefaultIR), given)
	if err != nil {
		return nil, err
	}
	return got["y"], nil
}

// TestRefused checks that errors say which node of what kind is the matter.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		op    string
		in    [][]int64
		attrs []onnxmodel.Attr
		say   string
	}{
		{"Frobnicate", [][]int64{{1}}, nil, "node Frobnicate_0: operator Frobnicate of domain \"\" is not known"},
		{"MatMul", [][]int64{{2, 3}, {4, 5}}, nil, "cannot be multiplied"},
		{"Add", [][]int64{{2}, {3}}, nil, "do not fit together"},
		{"Reshape", [][]int64{{2}, {1}}, nil, "decides a shape, but is not known"},
		{"Concat", [][]int64{{2, 2}, {3}}, nil, "at least 2 dimensions"},
		{"Conv", [][]int64{{1, 1, 2, 2}, {1, 1, 5, 5}}, nil, "too small"},
		{"ReduceMean", [][]int64{{2}}, []onnxmodel.Attr{onnxmodel.AttrInts("axes", 4)}, "axis 4 does not exist"},
		{"Gemm", [][]int64{{2, 3}}, nil, "input 1 is missing"},
	} {
		if _, err := infer(c.op, c.in, c.attrs...); err == nil || !strings.Contains(err.Error(), c.say) ||
			!strings.Contains(err.Error(), c.op+"_0") {
			t.Errorf("%s: error is %v, want one that says %q and names the node", c.op, err, c.say)
		}
	}
	m := onnxmodel.Add(onnxmodel.Float32, -1).Model(onnxmodel.DefaultOpset, onnxmodel.DefaultIR)
	if _, err := shapes.Infer(m, nil); err == nil || !strings.Contains(err.Error(), `input "a" is not given`) {
		t.Errorf("error is %v", err)
	}
}
