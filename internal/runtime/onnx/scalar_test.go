//go:build cgo

package onnx

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// unrankedFile is a model that gives back what it gets, and does not say how many dimensions that has.
func unrankedFile(t *testing.T, d onnxmodel.DType) string {
	t.Helper()
	m := onnxmodel.Identity(d, 1).Model(17, 8)
	m.Graph.Input[0].Type.GetTensorType().Shape = nil
	m.Graph.Output[0].Type.GetTensorType().Shape = nil
	file, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestScalarsComeBackUnchanged(t *testing.T) {
	for _, d := range onnxmodel.DTypes() {
		t.Run(d.String(), func(t *testing.T) {
			dt := tensor.ParseDType(d.String())
			in := launch(t, 1, 1,
				Model{Path: write(t, onnxmodel.Identity(d))},
				// Clients see one element.
				Model{Path: write(t, onnxmodel.Identity(d)), Reshapes: map[string]Reshape{
					"input": {Own: []int64{}, Seen: []int64{1}}, "output": {Own: []int64{}, Seen: []int64{1}}}},
				// The file says nothing of shapes: the configuration does for the input, the run for the output.
				Model{Path: unrankedFile(t, d), Shapes: map[string][]int64{"input": {-1, 2}}},
				Model{Path: unrankedFile(t, d), Shapes: map[string][]int64{"input": {}}},
			)
			for v, shape := range [][]int64{{}, {1}, {3, 2}, {}} {
				for round := range 2 { // a second run finds what the first one learned
					b := &dataplane.Batch{Variant: serving.VariantID(v), Items: 1, Portions: []dataplane.Portion{
						{Items: 1, Inputs: []tensor.Tensor{sample("input", dt, 7, shape...)}}}}
					if err := in.Run(t.Context(), b); err != nil {
						t.Fatalf("variant %d, round %d: %v", v, round, err)
					}
					got, want := b.Portions[0].Outputs[0], b.Portions[0].Inputs[0]
					if !slices.Equal(got.Shape, shape) || !bytes.Equal(got.Data, want.Data) || got.DType != dt {
						t.Errorf("variant %d, round %d: got %+v, gave %+v", v, round, got, want)
					}
				}
			}
		})
	}
}

// A model whose file does not say how many dimensions its input has takes any, one query at a time.
func TestInputsOfAnyNumberOfDimensions(t *testing.T) {
	for _, d := range onnxmodel.DTypes() {
		dt := tensor.ParseDType(d.String())
		in := launch(t, 4, 1, Model{Path: unrankedFile(t, d)})
		for k, shape := range [][]int64{{3, 2}, {}, {4}, {0, 2}, {3, 2}, {}} {
			b := &dataplane.Batch{Items: 1, Portions: []dataplane.Portion{
				{Items: 1, Inputs: []tensor.Tensor{sample("input", dt, k, shape...)}},
			}}
			if err := in.Run(t.Context(), b); err != nil {
				t.Fatalf("%s, %v: %v", d, shape, err)
			}
			got, want := b.Portions[0].Outputs[0], b.Portions[0].Inputs[0]
			if !slices.Equal(got.Shape, shape) || !bytes.Equal(got.Data, want.Data) {
				t.Errorf("%s: got %+v, gave %+v", d, got, want)
			}
		}
	}
}
