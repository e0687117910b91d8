package oip

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/sluice-serving/sluice/tensor"
)

// tensorFlowTypes are the names of datatypes in TensorFlow.
var tensorFlowTypes = map[tensor.DType]string{
	tensor.Bool: "DT_BOOL", tensor.Bytes: "DT_STRING", tensor.Int8: "DT_INT8", tensor.Int16: "DT_INT16",
	tensor.Int32: "DT_INT32", tensor.Int64: "DT_INT64", tensor.Uint8: "DT_UINT8", tensor.Uint16: "DT_UINT16",
	tensor.Uint32: "DT_UINT32", tensor.Uint64: "DT_UINT64", tensor.FP16: "DT_HALF", tensor.BF16: "DT_BFLOAT16",
	tensor.FP32: "DT_FLOAT", tensor.FP64: "DT_DOUBLE",
}

// defaultSignature is the name of the signature that requests without one ask for.
const defaultSignature = "serving_default"

// V1Metadata is what TensorFlow Serving says of a model.
type V1Metadata struct {
	Spec struct {
		Name      string `json:"name"`
		Signature string `json:"signature_name"`
		Version   string `json:"version"`
	} `json:"model_spec"`
	Metadata struct {
		Signatures struct {
			Signatures map[string]v1Signature `json:"signature_def"`
		} `json:"signature_def"`
	} `json:"metadata"`
}

type v1Signature struct {
	Inputs  map[string]v1Tensor `json:"inputs"`
	Outputs map[string]v1Tensor `json:"outputs"`
	Method  string              `json:"method_name"`
}

type v1Tensor struct {
	DType string `json:"dtype"`
	Shape struct {
		Dims        []v1Dim `json:"dim"`
		UnknownRank bool    `json:"unknown_rank"`
	} `json:"tensor_shape"`
	Name string `json:"name"`
}

// v1Dim is a dimension. Its size is text in the JSON of Protocol Buffers.
type v1Dim struct {
	Size string `json:"size"`
	Name string `json:"name"`
}

// NewV1Metadata returns the metadata of a model.
func NewV1Metadata(name, version string, inputs, outputs []tensor.Spec) *V1Metadata {
	m := &V1Metadata{}
	m.Spec.Name, m.Spec.Version = name, version
	m.Metadata.Signatures.Signatures = map[string]v1Signature{defaultSignature: {
		Inputs: v1Tensors(inputs), Outputs: v1Tensors(outputs), Method: "tensorflow/serving/predict",
	}}
	return m
}

func v1Tensors(specs []tensor.Spec) map[string]v1Tensor {
	out := make(map[string]v1Tensor, len(specs))
	for k := range specs {
		s := &specs[k]
		t := v1Tensor{DType: cmp.Or(tensorFlowTypes[s.DType], "DT_INVALID"), Name: s.Name}
		t.Shape.Dims, t.Shape.UnknownRank = []v1Dim{}, s.Shape == nil
		for _, d := range s.Shape {
			t.Shape.Dims = append(t.Shape.Dims, v1Dim{Size: strconv.FormatInt(d, 10)})
		}
		out[s.Name] = t
	}
	return out
}

// ParseV1Metadata returns the inputs and outputs of a model, by name, from what TensorFlow Serving says of it. A shape
// is nil where it is not known.
func ParseV1Metadata(body []byte) (inputs, outputs []tensor.Spec, err error) {
	var m V1Metadata
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, nil, fmt.Errorf("the metadata: %w", err)
	}
	s, ok := m.Metadata.Signatures.Signatures[defaultSignature]
	if !ok {
		return nil, nil, fmt.Errorf("the model has no signature %q", defaultSignature)
	}
	if inputs, err = specsOfV1(s.Inputs); err != nil {
		return nil, nil, err
	}
	outputs, err = specsOfV1(s.Outputs)
	return inputs, outputs, err
}

func specsOfV1(tensors map[string]v1Tensor) ([]tensor.Spec, error) {
	out := make([]tensor.Spec, 0, len(tensors))
	for name, t := range tensors { // any order: they are sorted below
		s := tensor.Spec{Name: name}
		for d, text := range tensorFlowTypes {
			if text == t.DType {
				s.DType = d
			}
		}
		if s.DType == tensor.Invalid {
			return nil, fmt.Errorf("tensor %.100q is %.40q, which cannot be carried", name, t.DType)
		}
		if !t.Shape.UnknownRank {
			s.Shape = make([]int64, 0, len(t.Shape.Dims))
		}
		for _, d := range t.Shape.Dims {
			n, err := strconv.ParseInt(d.Size, 10, 64)
			if err != nil || n < -1 || len(s.Shape) >= MaxRank {
				return nil, fmt.Errorf("tensor %.100q has a dimension of size %.40q", name, d.Size)
			}
			s.Shape = append(s.Shape, n)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b tensor.Spec) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}
