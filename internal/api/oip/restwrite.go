package oip

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/sluice-serving/sluice/tensor"
)

// EncodeREST writes an answer to a request. headerLength is NoBinary when the body is JSON alone.
func EncodeREST(r *RESTResponse, req *RESTRequest) (body []byte, headerLength int, err error) {
	head, blocks, err := AppendREST(make([]byte, 0, 512), r, req)
	if err != nil {
		return nil, 0, err
	}
	body, headerLength = join(head, blocks)
	return body, headerLength, nil
}

// AppendREST appends the JSON of an answer to b. blocks are the binary tensors that belong behind it, not copied; nil
// when the answer is JSON alone.
func AppendREST(b []byte, r *RESTResponse, req *RESTRequest) (head []byte, blocks [][]byte, err error) {
	b = append(b, '{')
	b = appendField(b, "model_name", r.ModelName)
	if r.ModelVersion != "" {
		b = appendField(b, "model_version", r.ModelVersion)
	}
	if r.ID != "" {
		b = appendField(b, "id", r.ID)
	}
	if len(r.Params) > 0 {
		b = append(b, `"parameters":{`...)
		for k, p := range r.Params {
			if k > 0 {
				b = append(b, ',')
			}
			b = appendString(b, p.Name)
			b = append(b, ':')
			b = appendScalar(b, p.Value)
		}
		b = append(b, `},`...)
	}
	b = append(b, `"outputs":`...)
	binary := func(name string) bool {
		if req == nil {
			return false
		}
		for _, o := range req.Outputs {
			if o.Name == name && o.Binary != nil {
				return *o.Binary
			}
		}
		return req.BinaryOutputs
	}
	return appendTensors(b, "outputs", r.Outputs, r.Shared, binary)
}

// EncodeRESTRequest writes a request, its inputs as binary blocks or as JSON.
func EncodeRESTRequest(r *RESTRequest, binary bool) (body []byte, headerLength int, err error) {
	b := []byte(`{`)
	if r.ID != "" {
		b = appendField(b, "id", r.ID)
	}
	b = append(b, `"parameters":{"binary_data_output":`...)
	b = strconv.AppendBool(b, r.BinaryOutputs)
	if r.Params.Timeout > 0 {
		b = append(b, `,"timeout":`...)
		b = strconv.AppendInt(b, r.Params.Timeout.Microseconds(), 10)
	}
	if r.Params.Priority != 0 {
		b = append(b, `,"priority":`...)
		b = strconv.AppendInt(b, int64(r.Params.Priority), 10)
	}
	if r.Params.MinAccuracy > 0 {
		b = append(b, `,"min_accuracy":`...)
		b = appendFloat(b, r.Params.MinAccuracy, 64)
	}
	if r.Params.Sequence != "" {
		b = append(b, `,"sequence_id":`...)
		if _, number := sequenceNumber(r.Params.Sequence); number {
			b = append(b, r.Params.Sequence...)
		} else {
			b = appendString(b, r.Params.Sequence)
		}
	}
	if r.Params.SequenceRate > 0 {
		b = append(b, `,"sequence_rate":`...)
		b = appendFloat(b, r.Params.SequenceRate, 64)
	}
	for _, p := range []struct {
		name string
		set  bool
	}{
		{"sequence_start", r.Params.SequenceStart}, {"sequence_end", r.Params.SequenceEnd},
		{"stage_timings", r.Params.StageTimings},
	} {
		if p.set {
			b = append(b, `,"`...)
			b = append(b, p.name...)
			b = append(b, `":true`...)
		}
	}
	b = append(b, `},`...)
	if len(r.Outputs) > 0 {
		b = append(b, `"outputs":[`...)
		for k, o := range r.Outputs {
			if k > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"name":`...)
			b = appendString(b, o.Name)
			if o.Binary != nil {
				b = append(b, `,"parameters":{"binary_data":`...)
				b = strconv.AppendBool(b, *o.Binary)
				b = append(b, '}')
			}
			b = append(b, '}')
		}
		b = append(b, `],`...)
	}
	b = append(b, `"inputs":`...)
	head, blocks, err := appendTensors(b, "inputs", r.Inputs, nil, func(string) bool { return binary })
	if err != nil {
		return nil, 0, err
	}
	body, headerLength = join(head, blocks)
	return body, headerLength, nil
}

// join puts JSON and the blocks behind it into one body.
func join(head []byte, blocks [][]byte) (body []byte, headerLength int) {
	if blocks == nil {
		return head, NoBinary
	}
	size := 0
	for _, d := range blocks {
		size += len(d)
	}
	body = slices.Grow(head, size)
	for _, d := range blocks {
		body = append(body, d...)
	}
	return body, len(head)
}

// appendTensors writes the list of tensors and closes the JSON. It returns the binary blocks, not copied; nil for none.
func appendTensors(b []byte, list string, tensors []tensor.Tensor, shared []*Shared, isBinary func(string) bool) (
	head []byte, blocks [][]byte, err error) {
	b = append(b, '[')
	for k := range tensors {
		t := &tensors[k]
		if k > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		b = appendField(b, "name", t.Name)
		b = appendField(b, "datatype", t.DType.String())
		b = append(b, `"shape":[`...)
		for at, n := range t.Shape {
			if at > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, n, 10)
		}
		if shared != nil && shared[k] != nil {
			b = append(b, `],"parameters":{`...)
			b = appendShared(b, shared[k])
			b = append(b, `}}`...)
			continue
		}
		if isBinary(t.Name) {
			b = append(b, `],"parameters":{"binary_data_size":`...)
			b = strconv.AppendInt(b, int64(len(t.Data)), 10)
			b = append(b, `}}`...)
			blocks = append(blocks, t.Data)
			continue
		}
		b = append(b, `],"data":[`...)
		if b, err = appendData(b, t); err != nil {
			return nil, nil, invalid(tensorField(list, k, t.Name, ""), "%v", err)
		}
		b = append(b, `]}`...)
	}
	b = append(b, `]}`...)
	return b, blocks, nil
}

// appendData writes the elements of a tensor, flat.
func appendData(b []byte, t *tensor.Tensor) ([]byte, error) {
	first := true
	comma := func() {
		if !first {
			b = append(b, ',')
		}
		first = false
	}
	d := t.Data
	size := t.DType.Size()
	switch t.DType {
	case tensor.Bytes:
		var bad error
		err := tensor.EachBytes(d, func(e []byte) {
			comma()
			if !utf8.Valid(e) {
				bad = invalid("", "an element is not UTF-8 text: ask for binary data")
				return
			}
			b = appendString(b, string(e))
		})
		if bad != nil {
			err = bad
		}
		return b, err
	case tensor.FP16, tensor.BF16:
		return nil, invalid("", "%s has no JSON form: ask for binary data", t.DType)
	}
	for ; len(d) >= size; d = d[size:] {
		comma()
		b = appendNumber(b, t.DType, d)
	}
	return b, nil
}

// appendNumber writes the first element of data that is neither BYTES nor of half precision.
func appendNumber(b []byte, t tensor.DType, data []byte) []byte {
	le := binary.LittleEndian
	switch t {
	case tensor.Bool:
		return strconv.AppendBool(b, data[0] != 0)
	case tensor.Uint8:
		return strconv.AppendUint(b, uint64(data[0]), 10)
	case tensor.Uint16:
		return strconv.AppendUint(b, uint64(le.Uint16(data)), 10)
	case tensor.Uint32:
		return strconv.AppendUint(b, uint64(le.Uint32(data)), 10)
	case tensor.Uint64:
		return strconv.AppendUint(b, le.Uint64(data), 10)
	case tensor.Int8:
		return strconv.AppendInt(b, int64(int8(data[0])), 10)
	case tensor.Int16:
		return strconv.AppendInt(b, int64(int16(le.Uint16(data))), 10)
	case tensor.Int32:
		return strconv.AppendInt(b, int64(int32(le.Uint32(data))), 10)
	case tensor.Int64:
		return strconv.AppendInt(b, int64(le.Uint64(data)), 10)
	case tensor.FP32:
		return appendFloat(b, float64(math.Float32frombits(le.Uint32(data))), 32)
	case tensor.FP64:
		return appendFloat(b, math.Float64frombits(le.Uint64(data)), 64)
	}
	return b
}

func appendFloat(b []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "NaN"...)
	case math.IsInf(f, 1):
		return append(b, "Infinity"...)
	case math.IsInf(f, -1):
		return append(b, "-Infinity"...)
	}
	return strconv.AppendFloat(b, f, 'g', -1, bits)
}

func appendScalar(b []byte, v any) []byte {
	switch x := v.(type) {
	case int64:
		return strconv.AppendInt(b, x, 10)
	case float64:
		return appendFloat(b, x, 64)
	case bool:
		return strconv.AppendBool(b, x)
	case string:
		return appendString(b, x)
	}
	return append(b, "null"...)
}

func appendField(b []byte, name, value string) []byte {
	b = append(b, '"')
	b = append(b, name...)
	b = append(b, `":`...)
	b = appendString(b, value)
	return append(b, ',')
}

// appendString writes a string as encoding/json does.
func appendString(b []byte, s string) []byte {
	if isSafe(s) {
		b = append(b, '"')
		b = append(b, s...)
		return append(b, '"')
	}
	q, err := json.Marshal(s)
	if err != nil { // a string always marshals
		return append(b, `""`...)
	}
	return append(b, q...)
}

// isSafe reports whether encoding/json writes a string as it is. Of characters beyond ASCII it does not know.
func isSafe(s string) bool {
	for k := range len(s) {
		if c := s[k]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}
