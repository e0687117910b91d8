//go:build cgo

package onnx

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// suite is where Debian's libonnx-testdata has the backend cases of the ONNX standard.
const suite = "/usr/share/libonnx-testdata/data"

// byChance are parts of the names of cases whose answers are drawn by chance.
var byChance = []string{"bernoulli", "training_dropout"}

// TestStandardsCases runs cases of the ONNX standard. Answers are the standard's, or where the runtime gives others by
// itself, those of the runtime. Cases that it refuses to load are passed over, and so are those of types that the
// protocol lacks. scripts/onnx-suite.sh runs all through a server.
func TestStandardsCases(t *testing.T) {
	needRuntime(t)
	files, err := filepath.Glob(filepath.Join(suite, "*", "*", "model.onnx"))
	if err != nil || len(files) == 0 {
		t.Skipf("not run without %s (package libonnx-testdata): %v", suite, err)
	}
	ran := 0
	for k, path := range files {
		name := filepath.Base(filepath.Dir(path))
		chance := slices.ContainsFunc(byChance, func(s string) bool { return strings.Contains(name, s) })
		if k%longtest.Of(11, 1) != 0 || chance {
			continue
		}
		inputs, outputs, err := caseTensors(path)
		if err != nil {
			continue // of a type that the protocol lacks
		}
		err = runCase(t, path, inputs, outputs)
		if err != nil && (strings.Contains(err.Error(), "Error loading") || len(inputs) == 0) {
			continue
		}
		ran++
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if ran < len(files)/longtest.Of(11, 1)/2 {
		t.Errorf("%d of %d cases were run", ran, len(files))
	}
}

func runCase(t *testing.T, path string, inputs, outputs []tensor.Tensor) error {
	r, err := tryLaunch(t, 1, 1, Model{Path: path, NoBatch: true,
		Example: func(int) []tensor.Tensor { return inputs }})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	b := &dataplane.Batch{Items: 1, Portions: []dataplane.Portion{{Items: 1, Inputs: inputs}}}
	if err := r.Run(t.Context(), b); err != nil {
		return err
	}
	var plain [][]byte
	for k, want := range outputs {
		got := b.Portions[0].Outputs[k]
		err := near(got, want)
		if err != nil && plain == nil {
			plain = unbound(t, path, inputs, named(outputs))
		}
		if err != nil && !bytes.Equal(got.Data, plain[k]) {
			return fmt.Errorf("output %q: %w", want.Name, err)
		}
	}
	return nil
}

func named(list []tensor.Tensor) (out []madeValue) {
	for _, x := range list {
		out = append(out, madeValue{name: x.Name})
	}
	return out
}

// near returns an error unless two tensors are the same but for rounding.
func near(got, want tensor.Tensor) error {
	if err := got.Validate(); err != nil {
		return err
	}
	if got.Name != want.Name || got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
		return fmt.Errorf("it is %q, %s %v, want %q, %s %v", got.Name, got.DType, got.Shape, want.Name, want.DType,
			want.Shape)
	}
	a, b := numbers(&got), numbers(&want)
	if a == nil {
		if string(got.Data) != string(want.Data) {
			return fmt.Errorf("it is %q, want %q", got.Data, want.Data)
		}
		return nil
	}
	// The absolute part is for the zeros that a Fourier transform gives.
	relative := 1e-3
	if got.DType == tensor.BF16 {
		relative = 1e-2 // it is rounded in other ways
	}
	for k := range a {
		same := a[k] == b[k] || math.IsNaN(a[k]) && math.IsNaN(b[k])
		if !same && !(math.Abs(a[k]-b[k]) <= 1e-4+relative*math.Abs(b[k])) {
			return fmt.Errorf("element %d is %v, want %v", k, a[k], b[k])
		}
	}
	return nil
}

// numbers are the elements of a floating-point tensor; nil of another one.
func numbers(t *tensor.Tensor) []float64 {
	size := t.DType.Size()
	var one func([]byte) float64
	switch t.DType {
	case tensor.FP64:
		one = func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }
	case tensor.FP32:
		one = func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }
	case tensor.BF16:
		one = func(b []byte) float64 {
			return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
		}
	default:
		return nil
	}
	out := make([]float64, 0, len(t.Data)/size)
	for at := 0; at < len(t.Data); at += size {
		out = append(out, one(t.Data[at:]))
	}
	return out
}

// caseTensors reads the inputs and the outputs of a case.
func caseTensors(path string) (inputs, outputs []tensor.Tensor, err error) {
	m, err := onnxmodel.Load(path)
	if err != nil {
		return nil, nil, err
	}
	if inputs, err = caseSide(path, "input", m.Graph.Input); err == nil {
		outputs, err = caseSide(path, "output", m.Graph.Output)
	}
	return inputs, outputs, err
}

func caseSide(path, kind string, declared []*pb.ValueInfoProto) (out []tensor.Tensor, err error) {
	for k, v := range declared {
		if v.GetType().GetTensorType() == nil {
			return nil, fmt.Errorf("%s %q is no tensor", kind, v.Name)
		}
		data, err := os.ReadFile(filepath.Join(filepath.Dir(path), "test_data_set_0", fmt.Sprintf("%s_%d.pb", kind, k)))
		if os.IsNotExist(err) {
			break // the others are constants of the file
		}
		var x pb.TensorProto
		if err == nil {
			err = proto.Unmarshal(data, &x)
		}
		if err != nil {
			return nil, err
		}
		// BFLOAT16 is UINT16 in the files.
		t := tensor.Tensor{Name: v.Name, Shape: append([]int64{}, x.Dims...),
			DType: tensor.ParseDType(onnxmodel.DType(v.Type.GetTensorType().ElemType).String())}
		if t.Data, err = onnxmodel.Elements(&x); err != nil {
			return nil, err
		}
		for i, d := range v.Type.GetTensorType().GetShape().GetDim() {
			if n := d.GetDimValue(); n > 0 && (i >= len(t.Shape) || t.Shape[i] != n) {
				return nil, fmt.Errorf("%s %q has shape %v, which its own model does not allow", kind, v.Name, t.Shape)
			}
		}
		out = append(out, t)
	}
	return out, nil
}
