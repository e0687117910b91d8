package loadgen

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sluice-serving/sluice/tensor"
)

// The generator writes and reads the few messages it needs itself, apart from the server's codec: inputs go to the socket
// without a copy, and a mistake in one codec is not hidden by the same mistake in the other. Numbers are those of the public
// protocol (package inference, service GRPCInferenceService).
const (
	fieldModelName       = 1 // ModelInferRequest, ModelInferResponse
	fieldModelVersion    = 2
	fieldParameters      = 4
	fieldTensors         = 5 // inputs of a request, outputs of a response
	fieldRawInput        = 7
	fieldRawOutput       = 6
	fieldTensorName      = 1 // InferInputTensor, InferOutputTensor, TensorMetadata
	fieldTensorType      = 2
	fieldTensorShape     = 3
	fieldTensorContents  = 5
	fieldMetadataInputs  = 4
	fieldMetadataName    = 1
	fieldParameterBool   = 1 // InferParameter
	fieldParameterInt    = 2
	fieldParameterString = 3
	fieldParameterDouble = 4
	fieldParameterUint   = 5
)

// copyBelow is the size up to which data is copied into the message instead of being sent from where it lies.
const copyBelow = 4096

// marshalInfer encodes a ModelInferRequest. The result shares the data of the inputs.
func marshalInfer(r *Request) mem.BufferSlice {
	b := make([]byte, 0, 256)
	b = appendString(b, fieldModelName, r.Model)
	b = appendString(b, fieldModelVersion, r.Version)
	if r.Timeout > 0 {
		b = appendParameter(b, "timeout", func(v []byte) []byte {
			return protowire.AppendVarint(protowire.AppendTag(v, fieldParameterInt, protowire.VarintType), uint64(max(1, r.Timeout.Microseconds())))
		})
	}
	if r.Priority > 0 {
		b = appendParameter(b, "priority", func(v []byte) []byte {
			return protowire.AppendVarint(protowire.AppendTag(v, fieldParameterInt, protowire.VarintType), uint64(r.Priority))
		})
	}
	if r.MinAccuracy > 0 {
		b = appendParameter(b, "min_accuracy", func(v []byte) []byte {
			return protowire.AppendFixed64(protowire.AppendTag(v, fieldParameterDouble, protowire.Fixed64Type), math.Float64bits(r.MinAccuracy))
		})
	}
	var scratch [160]byte
	for i := range r.Inputs {
		t := &r.Inputs[i]
		m := appendString(scratch[:0], fieldTensorName, t.Name)
		m = appendString(m, fieldTensorType, t.DType.String())
		size := 0
		for _, d := range t.Shape {
			size += protowire.SizeVarint(uint64(d))
		}
		m = protowire.AppendTag(m, fieldTensorShape, protowire.BytesType)
		m = protowire.AppendVarint(m, uint64(size))
		for _, d := range t.Shape {
			m = protowire.AppendVarint(m, uint64(d))
		}
		b = protowire.AppendTag(b, fieldTensors, protowire.BytesType)
		b = protowire.AppendBytes(b, m)
	}
	var out mem.BufferSlice
	for i := range r.Inputs {
		data := r.Inputs[i].Data
		b = protowire.AppendTag(b, fieldRawInput, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(len(data)))
		if len(data) <= copyBelow {
			b = append(b, data...)
			continue
		}
		out = append(out, mem.SliceBuffer(b), mem.SliceBuffer(data))
		b = nil
	}
	if len(b) > 0 {
		out = append(out, mem.SliceBuffer(b))
	}
	return out
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func appendParameter(b []byte, name string, value func([]byte) []byte) []byte {
	var key, val [48]byte
	entry := protowire.AppendString(protowire.AppendTag(key[:0], 1, protowire.BytesType), name)
	entry = protowire.AppendBytes(protowire.AppendTag(entry, 2, protowire.BytesType), value(val[:0]))
	return protowire.AppendBytes(protowire.AppendTag(b, fieldParameters, protowire.BytesType), entry)
}

var errWire = errors.New("the response is not a well-formed message")

// fields calls f with every field of a message: v holds varints and fixed numbers, b the bytes of the rest.
func fields(m []byte, f func(n protowire.Number, t protowire.Type, v uint64, b []byte) error) error {
	for len(m) > 0 {
		n, t, size := protowire.ConsumeTag(m)
		if size < 0 {
			return errWire
		}
		m = m[size:]
		var v uint64
		var b []byte
		switch t {
		case protowire.VarintType:
			v, size = protowire.ConsumeVarint(m)
		case protowire.Fixed64Type:
			v, size = protowire.ConsumeFixed64(m)
		case protowire.Fixed32Type:
			var v32 uint32
			v32, size = protowire.ConsumeFixed32(m)
			v = uint64(v32)
		case protowire.BytesType:
			b, size = protowire.ConsumeBytes(m)
		default:
			size = protowire.ConsumeFieldValue(n, t, m)
		}
		if size < 0 {
			return errWire
		}
		m = m[size:]
		if err := f(n, t, v, b); err != nil {
			return err
		}
	}
	return nil
}

// unmarshalInfer decodes a ModelInferResponse. Outputs share m.
func unmarshalInfer(m []byte, a *Answer) error {
	version := ""
	raw := 0
	err := fields(m, func(n protowire.Number, t protowire.Type, v uint64, b []byte) error {
		if t != protowire.BytesType {
			return nil
		}
		switch n {
		case fieldModelVersion:
			version = string(b)
		case fieldParameters:
			return unmarshalParameter(b, a)
		case fieldTensors:
			out, err := unmarshalTensor(b)
			if err != nil {
				return err
			}
			a.Outputs = append(a.Outputs, out)
		case fieldRawOutput:
			// Raw contents come after the tensors in every writer that follows field numbers; others are caught below.
			if raw < len(a.Outputs) {
				a.Outputs[raw].Data = b
			}
			raw++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if raw > len(a.Outputs) {
		return fmt.Errorf("the response has %d raw contents for %d outputs", raw, len(a.Outputs))
	}
	if a.Variant == "" {
		a.Variant = version
	}
	return nil
}

func unmarshalParameter(m []byte, a *Answer) error {
	var key []byte
	var text string
	var whole int64
	var real float64
	err := fields(m, func(n protowire.Number, t protowire.Type, _ uint64, b []byte) error {
		switch {
		case n == 1 && t == protowire.BytesType:
			key = b
		case n == 2 && t == protowire.BytesType:
			return fields(b, func(n protowire.Number, t protowire.Type, v uint64, b []byte) error {
				switch {
				case n == fieldParameterString && t == protowire.BytesType:
					text = string(b)
				case (n == fieldParameterInt || n == fieldParameterUint) && t == protowire.VarintType:
					whole, real = int64(v), float64(int64(v))
				case n == fieldParameterDouble && t == protowire.Fixed64Type:
					real = math.Float64frombits(v)
					whole = clampInt(real)
				}
				return nil
			})
		}
		return nil
	})
	if err == nil {
		a.parameter(string(key), text, whole, real)
	}
	return err
}

// parameter takes a response parameter that sluice's servers send; others are ignored.
func (a *Answer) parameter(key, text string, whole int64, real float64) {
	switch key {
	case "variant":
		a.Variant = text
	case "accuracy":
		a.Accuracy = real
	case "queue_us":
		a.Queue = time.Duration(min(max(whole, 0), int64(24*time.Hour/time.Microsecond))) * time.Microsecond
	case "batch_size":
		a.Batch = int32(min(max(whole, 0), math.MaxInt32))
	}
}

func clampInt(f float64) int64 {
	if !(math.Abs(f) < 1<<62) {
		return 0
	}
	return int64(f)
}

func unmarshalTensor(m []byte) (tensor.Tensor, error) {
	var t tensor.Tensor
	var contents []byte
	err := fields(m, func(n protowire.Number, ty protowire.Type, v uint64, b []byte) error {
		switch {
		case n == fieldTensorName && ty == protowire.BytesType:
			t.Name = string(b)
		case n == fieldTensorType && ty == protowire.BytesType:
			t.DType = tensor.ParseDType(string(b))
		case n == fieldTensorShape && ty == protowire.VarintType:
			t.Shape = append(t.Shape, int64(v))
		case n == fieldTensorShape && ty == protowire.BytesType:
			for len(b) > 0 {
				d, size := protowire.ConsumeVarint(b)
				if size < 0 {
					return errWire
				}
				t.Shape = append(t.Shape, int64(d))
				b = b[size:]
			}
		case n == fieldTensorContents && ty == protowire.BytesType:
			contents = b
		}
		return nil
	})
	if err == nil && contents != nil {
		t.Data, err = typedContents(t.DType, contents)
	}
	return t, err
}

// typedContents turns InferTensorContents into raw data. Each type's numbers lie in one field of it, packed or one by one.
func typedContents(d tensor.DType, m []byte) ([]byte, error) {
	var out []byte
	put := func(v uint64) {
		switch d.Size() {
		case 1:
			out = append(out, byte(v))
		case 2:
			out = binary.LittleEndian.AppendUint16(out, uint16(v))
		case 4:
			out = binary.LittleEndian.AppendUint32(out, uint32(v))
		case 8:
			out = binary.LittleEndian.AppendUint64(out, v)
		}
	}
	err := fields(m, func(n protowire.Number, t protowire.Type, v uint64, b []byte) error {
		if n == 8 && t == protowire.BytesType { // bytes_contents
			out = tensor.AppendBytes(out, b)
			return nil
		}
		if t != protowire.BytesType {
			put(v)
			return nil
		}
		for len(b) > 0 {
			var v uint64
			var size int
			switch n {
			case 6: // fp32_contents
				var v32 uint32
				v32, size = protowire.ConsumeFixed32(b)
				v = uint64(v32)
			case 7: // fp64_contents
				v, size = protowire.ConsumeFixed64(b)
			default:
				v, size = protowire.ConsumeVarint(b)
			}
			if size < 0 {
				return errWire
			}
			put(v)
			b = b[size:]
		}
		return nil
	})
	return out, err
}

// unmarshalMetadata decodes the inputs of a ModelMetadataResponse.
func unmarshalMetadata(m []byte) ([]tensor.Spec, error) {
	var out []tensor.Spec
	err := fields(m, func(n protowire.Number, t protowire.Type, _ uint64, b []byte) error {
		if n != fieldMetadataInputs || t != protowire.BytesType {
			return nil
		}
		in, err := unmarshalTensor(b)
		out = append(out, tensor.Spec{Name: in.Name, DType: in.DType, Shape: in.Shape})
		return err
	})
	return out, err
}
