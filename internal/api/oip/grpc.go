package oip

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// DecodeRequest returns the inputs of a request. Raw contents are not copied: the tensors alias the message.
// regions reads inputs that are in shared memory; nil refuses those. Such inputs have no entry in the raw contents.
func DecodeRequest(r *pb.ModelInferRequest, regions Regions) ([]tensor.Tensor, error) {
	if len(r.Inputs) == 0 {
		return nil, ErrNoInputs
	}
	if len(r.Inputs) > MaxTensors {
		return nil, invalid("inputs", "has %d tensors, at most %d are taken", len(r.Inputs), MaxTensors)
	}
	where, inside, err := sharedInputs(r)
	if err != nil {
		return nil, err
	}
	blocks := r.RawInputContents
	raw := len(blocks) > 0
	if raw && len(blocks) != inside {
		return nil, invalid("raw_input_contents",
			"has %d entries for %d inputs: give one for each, in their order", len(blocks), inside)
	}
	inputs := make([]tensor.Tensor, len(r.Inputs))
	for k, in := range r.Inputs {
		var block []byte
		if raw {
			if in.GetContents() != nil {
				return nil, invalid(inputField(k, in.GetName(), "contents"),
					"is given beside raw_input_contents: use one of them for all inputs")
			}
			if where == nil || where[k] == nil {
				block, blocks = blocks[0], blocks[1:]
			}
		}
		isShared := where != nil && where[k] != nil
		if isShared {
			if in.GetContents() != nil {
				return nil, invalid(inputField(k, in.GetName(), "contents"),
					"is given, and the input is in shared memory: use one of them")
			}
			if block, err = where[k].message(inputField(k, in.GetName(), ""), in, regions); err != nil {
				return nil, err
			}
		}
		t, err := decodeTensor(k, "inputs", in.GetName(), in.GetDatatype(), in.GetShape(), in.GetContents(), block,
			raw || isShared)
		if err != nil {
			return nil, err
		}
		inputs[k] = t
		for at := range k {
			if inputs[at].Name == t.Name {
				return nil, invalid(inputField(k, in.GetName(), "name"), "is the name of inputs[%d], too", at)
			}
		}
	}
	return inputs, nil
}

func inputField(k int, name, field string) string { return tensorField("inputs", k, name, field) }

func tensorField(list string, k int, name, field string) string {
	s := fmt.Sprintf("%s[%d]", list, k)
	if name != "" {
		s += fmt.Sprintf(" %q", name)
	}
	if field != "" {
		s += " " + field
	}
	return s
}

func decodeTensor(k int, list, name, datatype string, shape []int64, contents *pb.InferTensorContents, block []byte,
	raw bool) (tensor.Tensor, error) {
	t := tensor.Tensor{Name: name, DType: tensor.ParseDType(datatype), Shape: shape}
	fail := func(format string, args ...any) error {
		return invalid(tensorField(list, k, name, ""), format, args...)
	}
	if name == "" {
		return t, fail("has no name")
	}
	if t.DType == tensor.Invalid {
		return t, fail("datatype %q is unknown: use one such as FP32, INT64 or BYTES", datatype)
	}
	if len(shape) > MaxRank {
		return t, fail("has %d dimensions, at most %d are taken", len(shape), MaxRank)
	}
	n, err := tensor.Elements(shape, MaxElements)
	if err != nil {
		return t, fail("%v", err)
	}
	if !raw {
		if t.Data, err = packContents(tensorField(list, k, name, ""), t.DType, n, contents); err != nil {
			return t, err
		}
		return t, nil
	}
	t.Data = block
	if err := t.Validate(); err != nil {
		return t, fail("%v", err)
	}
	return t, nil
}

// contentsField names the field that carries a type's elements; "" for the types that only travel raw.
var contentsField = [...]string{
	tensor.Bool: "bool_contents", tensor.Int8: "int_contents", tensor.Int16: "int_contents",
	tensor.Int32: "int_contents", tensor.Int64: "int64_contents",
	tensor.Uint8: "uint_contents", tensor.Uint16: "uint_contents", tensor.Uint32: "uint_contents",
	tensor.Uint64: "uint64_contents",
	tensor.FP16:   "", tensor.BF16: "", tensor.FP32: "fp32_contents", tensor.FP64: "fp64_contents",
	tensor.Bytes: "bytes_contents",
}

// packContents turns typed contents into a block. INT8 and INT16 are in int_contents and so on, one element each.
func packContents(field string, d tensor.DType, n int64, c *pb.InferTensorContents) ([]byte, error) {
	got, err := countContents(field, d, c)
	if err != nil {
		return nil, err
	}
	if int64(got) != n {
		return nil, invalid(field, "has %d elements, its shape needs %d", got, n)
	}
	if got == 0 {
		return nil, nil // c may be nil
	}
	if err := checkRanges(field, d, c); err != nil {
		return nil, err
	}
	return appendContents(make([]byte, 0, contentsSize(got, d, c)), d, c), nil
}

// contentsSize is the bytes of a block of n elements.
func contentsSize(n int, d tensor.DType, c *pb.InferTensorContents) int {
	if d != tensor.Bytes {
		return n * d.Size()
	}
	size := 0
	for _, e := range c.BytesContents {
		size += 4 + len(e) // each has a prefix with its length
	}
	return size
}

// countContents returns the number of elements of a type. It returns an error when there are elements in a field of
// other types.
func countContents(field string, d tensor.DType, c *pb.InferTensorContents) (n int, err error) {
	want := contentsField[d]
	if want == "" {
		return 0, invalid(field, "%s has no typed contents: send it in raw_input_contents", d)
	}
	for _, x := range [...]struct {
		name string
		n    int
	}{
		{"bool_contents", len(c.GetBoolContents())}, {"int_contents", len(c.GetIntContents())},
		{"int64_contents", len(c.GetInt64Contents())}, {"uint_contents", len(c.GetUintContents())},
		{"uint64_contents", len(c.GetUint64Contents())}, {"fp32_contents", len(c.GetFp32Contents())},
		{"fp64_contents", len(c.GetFp64Contents())}, {"bytes_contents", len(c.GetBytesContents())},
	} {
		if x.n == 0 {
			continue
		}
		if x.name != want {
			return 0, invalid(field, "has %s, but %s elements belong into %s", x.name, d, want)
		}
		n = x.n
	}
	return n, nil
}

// checkRanges returns an error for an element that does not fit its type: types of 8 and 16 bits have no field of their
// own.
func checkRanges(field string, d tensor.DType, c *pb.InferTensorContents) error {
	bad := func(k int, v any) error {
		return invalid(field, "%s[%d] is %d, which is no %s", contentsField[d], k, v, d)
	}
	switch d {
	case tensor.Int8, tensor.Int16:
		bits := 8 * d.Size()
		for k, v := range c.IntContents {
			if v != v<<(32-bits)>>(32-bits) {
				return bad(k, v)
			}
		}
	case tensor.Uint8, tensor.Uint16:
		for k, v := range c.UintContents {
			if v>>(8*d.Size()) != 0 {
				return bad(k, v)
			}
		}
	}
	return nil
}

// appendContents appends the elements of a type, which fit it, to a block.
func appendContents(out []byte, d tensor.DType, c *pb.InferTensorContents) []byte {
	le := binary.LittleEndian
	switch d {
	case tensor.Bool:
		for _, v := range c.BoolContents {
			b := byte(0)
			if v {
				b = 1
			}
			out = append(out, b)
		}
	case tensor.Int8:
		for _, v := range c.IntContents {
			out = append(out, byte(v))
		}
	case tensor.Int16:
		for _, v := range c.IntContents {
			out = le.AppendUint16(out, uint16(v))
		}
	case tensor.Int32:
		for _, v := range c.IntContents {
			out = le.AppendUint32(out, uint32(v))
		}
	case tensor.Int64:
		for _, v := range c.Int64Contents {
			out = le.AppendUint64(out, uint64(v))
		}
	case tensor.Uint8:
		for _, v := range c.UintContents {
			out = append(out, byte(v))
		}
	case tensor.Uint16:
		for _, v := range c.UintContents {
			out = le.AppendUint16(out, uint16(v))
		}
	case tensor.Uint32:
		for _, v := range c.UintContents {
			out = le.AppendUint32(out, v)
		}
	case tensor.Uint64:
		for _, v := range c.Uint64Contents {
			out = le.AppendUint64(out, v)
		}
	case tensor.FP32:
		for _, v := range c.Fp32Contents {
			out = le.AppendUint32(out, math.Float32bits(v))
		}
	case tensor.FP64:
		for _, v := range c.Fp64Contents {
			out = le.AppendUint64(out, math.Float64bits(v))
		}
	case tensor.Bytes:
		for _, v := range c.BytesContents {
			out = tensor.AppendBytes(out, v)
		}
	}
	return out
}

// EncodeOutputs puts outputs into an answer, raw whatever form the request had: existing clients read nothing else. Raw
// contents alias the tensors. shared says by output which of them are in shared memory, where their raw contents stay
// empty; nil for none.
func EncodeOutputs(to *pb.ModelInferResponse, outputs []tensor.Tensor, shared []*Shared) {
	to.Outputs = make([]*pb.ModelInferResponse_InferOutputTensor, len(outputs))
	to.RawOutputContents = make([][]byte, len(outputs))
	block := make([]pb.ModelInferResponse_InferOutputTensor, len(outputs))
	for k := range outputs {
		t, o := &outputs[k], &block[k]
		o.Name, o.Datatype, o.Shape = t.Name, t.DType.String(), t.Shape
		if shared != nil && shared[k] != nil {
			o.Parameters = sharedMessage(shared[k])
		} else {
			to.RawOutputContents[k] = t.Data
		}
		to.Outputs[k] = o
	}
}

// EncodeRequest returns a request with raw contents. The message aliases the tensors.
func EncodeRequest(
	model, version, id string, inputs []tensor.Tensor, params map[string]*pb.InferParameter,
) *pb.ModelInferRequest {
	r := &pb.ModelInferRequest{ModelName: model, ModelVersion: version, Id: id, Parameters: params,
		Inputs:           make([]*pb.ModelInferRequest_InferInputTensor, len(inputs)),
		RawInputContents: make([][]byte, len(inputs))}
	for k := range inputs {
		r.Inputs[k] = &pb.ModelInferRequest_InferInputTensor{
			Name: inputs[k].Name, Datatype: inputs[k].DType.String(), Shape: inputs[k].Shape,
		}
		r.RawInputContents[k] = inputs[k].Data
	}
	return r
}

// TensorMetadata describes inputs or outputs of a model.
func TensorMetadata(specs []tensor.Spec) []*pb.ModelMetadataResponse_TensorMetadata {
	out := make([]*pb.ModelMetadataResponse_TensorMetadata, len(specs))
	for k, s := range specs {
		out[k] = &pb.ModelMetadataResponse_TensorMetadata{Name: s.Name, Datatype: s.DType.String(), Shape: s.Shape}
	}
	return out
}

// DecodeOutputs returns the outputs of an answer in either form. Raw contents are not copied.
func DecodeOutputs(r *pb.ModelInferResponse) ([]tensor.Tensor, error) {
	raw := len(r.RawOutputContents) > 0
	if raw && len(r.RawOutputContents) != len(r.Outputs) {
		return nil, invalid("raw_output_contents", "has %d entries for %d outputs", len(r.RawOutputContents),
			len(r.Outputs))
	}
	if len(r.Outputs) > MaxTensors {
		return nil, invalid("outputs", "has %d tensors, at most %d are taken", len(r.Outputs), MaxTensors)
	}
	out := make([]tensor.Tensor, len(r.Outputs))
	for k, o := range r.Outputs {
		var block []byte
		if raw {
			block = r.RawOutputContents[k]
		}
		t, err := decodeTensor(k, "outputs", o.GetName(), o.GetDatatype(), o.GetShape(), o.GetContents(), block, raw)
		if err != nil {
			return nil, err
		}
		out[k] = t
	}
	return out, nil
}
