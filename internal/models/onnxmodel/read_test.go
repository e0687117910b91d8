package onnxmodel

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/bounded"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

func TestReadGivesWhatTheBuilderWrote(t *testing.T) {
	for _, d := range DTypes() {
		path := filepath.Join(t.TempDir(), "m", "1", "model.onnx")
		if err := Identity(d, Symbolic, 3, Symbolic).Write(path); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		symbols := []string{"N", "", "D2"}
		want := &Info{IR: DefaultIR, Opset: DefaultOpset, Producer: "sluice", Graph: "identity",
			Inputs:  []Value{{Name: "input", DType: d, Shape: []int64{-1, 3, -1}, Symbols: symbols, Ranked: true}},
			Outputs: []Value{{Name: "output", DType: d, Shape: []int64{-1, 3, -1}, Symbols: symbols, Ranked: true}}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v: got %+v, want %+v", d, got, want)
		}
	}
}

func TestReadLeavesOutConstantsAmongTheInputs(t *testing.T) {
	m := Identity(Float32, Symbolic).Model(7, 3)
	m.Graph.Input = append(m.Graph.Input, valueInfo("weight", Float32, []int64{2}))
	m.Graph.Initializer = append(m.Graph.Initializer, &pb.TensorProto{
		Name: "weight", DataType: int32(Float32), Dims: []int64{2}, RawData: make([]byte, 8)})
	info, err := readMessage(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Inputs) != 1 || info.Inputs[0].Name != "input" || info.Opset != 7 || info.IR != 3 ||
		len(info.Optional) != 0 {
		t.Errorf("got %+v", info)
	}
	m.IrVersion = 4
	if info, err = readMessage(m); err != nil {
		t.Fatal(err)
	}
	if len(info.Inputs) != 1 || len(info.Optional) != 1 || info.Optional[0].Name != "weight" {
		t.Errorf("got %+v", info)
	}
}

func TestReadTellsScalarFromUnranked(t *testing.T) {
	m := Identity(Float32).Model(17, 8)
	m.Graph.Output[0].Type.GetTensorType().Shape = nil
	info, err := readMessage(m)
	if err != nil {
		t.Fatal(err)
	}
	if !info.Inputs[0].Ranked || len(info.Inputs[0].Shape) != 0 || info.Outputs[0].Ranked {
		t.Errorf("got %+v", info)
	}
}

func TestReadNamesTypesThatTheProtocolLacks(t *testing.T) {
	floats := valueInfo("", Float32, []int64{2}).Type
	sequence := func(of *pb.TypeProto) *pb.TypeProto {
		return &pb.TypeProto{Value: &pb.TypeProto_SequenceType{SequenceType: &pb.TypeProto_Sequence{ElemType: of}}}
	}
	optional := func(of *pb.TypeProto) *pb.TypeProto {
		return &pb.TypeProto{Value: &pb.TypeProto_OptionalType{OptionalType: &pb.TypeProto_Optional{ElemType: of}}}
	}
	deep := floats
	for range 100 {
		deep = sequence(deep)
	}
	for want, is := range map[string]*pb.TypeProto{
		"":                                   floats,
		"COMPLEX64 tensor":                   valueInfo("", DType(pb.TensorProto_COMPLEX64), nil).Type,
		"sequence of FLOAT tensors":          sequence(floats),
		"optional FLOAT tensor":              optional(floats),
		"optional sequence of FLOAT tensors": optional(sequence(floats)),
		"sequence of maps from INT64 to FLOAT tensors": sequence(&pb.TypeProto{Value: &pb.TypeProto_MapType{
			MapType: &pb.TypeProto_Map{KeyType: int32(Int64), ValueType: floats}}}),
		"sparse DOUBLE tensor": {Value: &pb.TypeProto_SparseTensorType{
			SparseTensorType: &pb.TypeProto_SparseTensor{ElemType: int32(Float64)}}},
		"sequence" + strings.Repeat(" of sequences", maxTypeDepth) + " of ...": deep,
		"value of an unknown type": nil,
	} {
		m := Identity(Float32, 2).Model(17, 8)
		m.Graph.Input[0].Type = is
		info, err := readMessage(m)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Inputs[0].Foreign; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// countingReader counts the bytes asked of it.
type countingReader struct {
	*bytes.Reader
	n int64
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.Reader.ReadAt(p, off)
	c.n += int64(n)
	return n, err
}

func TestReadSkipsWeights(t *testing.T) {
	const weights = 8 << 20
	g := Identity(Float32, Symbolic, 2).Initializer("w", make([]float32, weights/4), weights/4)
	data, err := proto.Marshal(g.Model(17, 8))
	if err != nil {
		t.Fatal(err)
	}
	src := &countingReader{Reader: bytes.NewReader(data)}
	if _, err := read(src, int64(len(data))); err != nil {
		t.Fatal(err)
	}
	if src.n > 512<<10 {
		t.Errorf("read %d bytes of a file of %d", src.n, len(data))
	}
}

func TestReadRefuses(t *testing.T) {
	valid, err := proto.Marshal(Identity(Float32, 2).Model(17, 8))
	if err != nil {
		t.Fatal(err)
	}
	var manyInputs []byte
	for range maxValues + 1 {
		b, _ := proto.Marshal(valueInfo("x", Float32, nil))
		manyInputs = protowire.AppendBytes(protowire.AppendTag(manyInputs, 11, protowire.BytesType), b)
	}
	graph := func(b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), b)
	}
	bytesField := func(num protowire.Number, n int) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), make([]byte, n))
	}
	deep, _ := proto.Marshal(valueInfo("x", Float32, make([]int64, maxRank+1)))
	noOutputs := Identity(Float32, 2).Model(17, 8)
	noOutputs.Graph.Output = nil
	noOutputsData, _ := proto.Marshal(noOutputs)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":      {nil, "no graph"},
		"text":       {[]byte("#!/bin/sh\necho hello\n"), "malformed"},
		"cut short":  {valid[:len(valid)-3], "malformed"},
		"no outputs": {noOutputsData, "no outputs"},
		"many":       {graph(manyInputs), "more than 4096 inputs"},
		"long name":  {graph(bytesField(2, maxNameSize+1)), "name of"},
		"big value":  {graph(bytesField(11, maxValueSize+1)), "more than"},
		"deep": {
			graph(protowire.AppendBytes(protowire.AppendTag(nil, 11, protowire.BytesType), deep)), "dimensions",
		},
		"nameless": {graph(bytesField(12, 0)), "has no name"},
	} {
		_, err := read(bytes.NewReader(c.data), int64(len(c.data)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, c.want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "absent.onnx")); !os.IsNotExist(err) &&
		(err == nil || !strings.Contains(err.Error(), "absent.onnx")) {
		t.Errorf("absent file: %v", err)
	}
	if _, err := Read(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("folder: %v", err)
	}
}

func readMessage(m *pb.ModelProto) (*Info, error) {
	data, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	return read(bytes.NewReader(data), int64(len(data)))
}

// FuzzRead checks that no file makes the reader fail other than by an error, and that where the whole file also decodes
// as a message, both ways see the same graph.
func FuzzRead(f *testing.F) {
	for _, m := range []*pb.ModelProto{
		Identity(Float32, Symbolic, 3).Model(17, 8), Add(Int64).Model(17, 8),
		Identity(String, Symbolic).Initializer("w", []float32{1, 2}, 2).Model(13, 7),
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add([]byte{0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, data []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(data)))()
		info, err := read(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		if len(info.Inputs) > maxValues || len(info.Outputs) == 0 || len(info.Outputs) > maxValues {
			t.Fatalf("%d inputs, %d outputs", len(info.Inputs), len(info.Outputs))
		}
		var m pb.ModelProto
		if proto.Unmarshal(data, &m) != nil {
			return
		}
		if got, want := len(info.Outputs), len(m.Graph.Output); got != want {
			t.Fatalf("%d outputs, the message has %d", got, want)
		}
		for i, v := range info.Outputs {
			if v.Name != m.Graph.Output[i].Name ||
				int32(v.DType) != m.Graph.Output[i].Type.GetTensorType().GetElemType() {
				t.Fatalf("output %d is %+v, the message has %v", i, v, m.Graph.Output[i])
			}
		}
	})
}
