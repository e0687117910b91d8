package oip

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"

	"github.com/sluice-serving/sluice/tensor"
)

// HeaderLength is the HTTP header with the length of the JSON in a body with binary tensors.
const HeaderLength = "Inference-Header-Content-Length"

// NoBinary is the header length of a body that is JSON alone.
const NoBinary = -1

// maxDepth bounds the nesting of tensor data.
const maxDepth = MaxRank + 1

// RESTRequest is an inference request over HTTP.
type RESTRequest struct {
	ID     string
	Inputs []tensor.Tensor
	// Outputs are the outputs asked for, in order; nil means all.
	Outputs []RequestedOutput
	// BinaryOutputs (binary_data_output) asks for every output in binary form unless the output says otherwise.
	BinaryOutputs bool
	Params        Params
}

// RESTResponse is an answer over HTTP.
type RESTResponse struct {
	ModelName, ModelVersion, ID string
	Params                      []Param // in the order in which they are written
	Outputs                     []tensor.Tensor
	// Shared says by output which of them are in shared memory and not in the answer; nil for none.
	Shared []*Shared
}

// Param is a response parameter: a bool, int64, float64 or string.
type Param struct {
	Name  string
	Value any
}

// The JSON forms.
type restTensor struct {
	Name       string          `json:"name"`
	Datatype   string          `json:"datatype"`
	Shape      json.RawMessage `json:"shape"`
	Parameters jsonFields      `json:"parameters"`
	Data       json.RawMessage `json:"data"`

	dims []int64 // of Shape, where readHead has read it
}

type restMessage struct {
	ModelName    string          `json:"model_name"`
	ModelVersion string          `json:"model_version"`
	ID           string          `json:"id"`
	Parameters   jsonFields      `json:"parameters"`
	Inputs       []restTensor    `json:"inputs"`
	Outputs      []restTensor    `json:"outputs"`
	Instances    json.RawMessage `json:"instances"` // of the protocol v1
}

// split separates the JSON from the binary blocks behind it.
func split(body []byte, headerLength int) (head, blocks []byte, err error) {
	if headerLength == NoBinary {
		return body, nil, nil
	}
	if headerLength < 0 || headerLength > len(body) {
		return nil, nil, invalid(HeaderLength, "is %d, the body has %d bytes", headerLength, len(body))
	}
	return body[:headerLength], body[headerLength:], nil
}

// parse reads the JSON of a message.
func parse(head []byte, bounds *Bounds, m *restMessage) error {
	head = bytes.TrimPrefix(head, []byte("\ufeff")) // RFC 8259, section 8.1: of a file that an editor has written
	if readHead(head, bounds, m) {
		return nil
	}
	any, err := parseAny(head, bounds)
	if err == nil {
		*m = *any
	}
	return err
}

// parseAny reads JSON of any form. encoding/json refuses the bare NaN and Infinity that clients send in tensor data. So
// the data is cut out first and scanned separately.
func parseAny(head []byte, bounds *Bounds) (*restMessage, error) {
	lean, data, err := cutData(head, bounds)
	if err != nil {
		return nil, err
	}
	var m restMessage
	if err := json.Unmarshal(lean, &m); err != nil {
		return nil, wrongJSON(err)
	}
	restore := func(list []restTensor) error {
		for k := range list {
			if len(list[k].Data) == 0 {
				continue
			}
			var at int
			if err := json.Unmarshal(list[k].Data, &at); err != nil || at < 0 || at >= len(data) {
				return invalid("", "tensor data must be an array")
			}
			list[k].Data = data[at]
		}
		return nil
	}
	if err := restore(m.Inputs); err != nil {
		return nil, err
	}
	return &m, restore(m.Outputs)
}

// DecodeREST decodes a request. headerLength is the value of HeaderLength, or NoBinary when the header is absent. raw
// returns the model's only input for a request that is one raw block (headerLength 0); nil refuses those. Binary
// tensors alias body. regions reads inputs that are in shared memory; nil refuses those. A request without inputs is
// returned with ErrNoInputs.
func DecodeREST(body []byte, headerLength int, bounds Bounds, raw func() (s tensor.Spec, batched bool, err error),
	regions Regions) (*RESTRequest, error) {
	bounds = bounds.WithDefaults()
	if headerLength == 0 {
		return decodeRaw(body, raw)
	}
	head, blocks, err := split(body, headerLength)
	if err != nil {
		return nil, err
	}
	var m restMessage
	if err := parse(head, &bounds, &m); err != nil {
		return nil, err
	}
	r := &RESTRequest{ID: m.ID}
	for _, p := range m.Parameters {
		if err := r.param(p.name, p.value); err != nil {
			return nil, err
		}
	}
	if err := r.Params.check(); err != nil {
		return nil, err
	}
	if len(m.Inputs) == 0 && len(m.Instances) > 0 {
		return nil, invalid("instances", "belongs to the protocol v1, this is v2: "+
			`send {"inputs":[{"name":...,"datatype":...,"shape":[...],"data":[...]}]}`)
	}
	if r.Inputs, err = decodeTensors("inputs", m.Inputs, blocks, &bounds, regions); err != nil {
		return nil, err
	}
	for k := range m.Outputs {
		o := &m.Outputs[k]
		field := fmt.Sprintf("outputs[%d]", k)
		if o.Name == "" {
			return nil, invalid(field, "has no name")
		}
		want := RequestedOutput{Name: o.Name}
		if v, ok := o.Parameters.get("binary_data"); ok {
			var b bool
			if !setFlag(&b, v) {
				return nil, invalid(field+" binary_data", "is %s, want true or false", v)
			}
			want.Binary = &b
		}
		if err := want.set(field, jsonParameter(o.Parameters)); err != nil {
			return nil, err
		}
		r.Outputs = append(r.Outputs, want)
	}
	if len(r.Inputs) == 0 {
		return r, ErrNoInputs
	}
	return r, nil
}

// param sets one request parameter.
func (r *RESTRequest) param(name string, v json.RawMessage) error {
	if name == "binary_data_output" {
		if !setFlag(&r.BinaryOutputs, v) {
			return invalid("parameters.binary_data_output", "is %s, want true or false", v)
		}
		return nil
	}
	return r.Params.Set(name, scalarValue(v))
}

// setFlag reads true or false; null changes nothing. It returns false for anything else.
func setFlag(to *bool, v json.RawMessage) bool {
	switch string(v) {
	case "true", "false":
		*to = v[0] == 't'
		return true
	case "null":
		return true
	}
	return false
}

// scalarValue turns a JSON scalar into a Go value. Whole numbers become int64, larger ones uint64.
func scalarValue(v json.RawMessage) any {
	if len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9') {
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
	}
	if last := len(v) - 1; last > 0 && v[0] == '"' && v[last] == '"' && isPlain(v[1:last]) {
		return string(v[1:last])
	}
	var n int64
	var u uint64
	var f float64
	var s string
	var b bool
	switch {
	case json.Unmarshal(v, &n) == nil:
		return n
	case json.Unmarshal(v, &u) == nil:
		return u
	case json.Unmarshal(v, &f) == nil:
		return f
	case json.Unmarshal(v, &s) == nil:
		return s
	case json.Unmarshal(v, &b) == nil:
		return b
	}
	return string(v)
}

// decodeTensors reads tensors with data in the JSON or, in the same order, in the blocks behind it.
func decodeTensors(list string, in []restTensor, blocks []byte, bounds *Bounds, regions Regions) ([]tensor.Tensor,
	error) {
	elements := int64(0) // of those in the JSON
	out := make([]tensor.Tensor, len(in))
	for k := range in {
		x := &in[k]
		field := func() string { return tensorField(list, k, x.Name, "") }
		t := &out[k]
		t.Name, t.DType = x.Name, tensor.ParseDType(x.Datatype)
		if x.Name == "" {
			return nil, invalid(field(), "has no name")
		}
		if t.DType == tensor.Invalid {
			return nil, invalid(field(), "datatype %q is unknown: use one such as FP32, INT64 or BYTES", x.Datatype)
		}
		for at := range k {
			if out[at].Name == t.Name {
				return nil, invalid(field(), "has the name of %s[%d]", list, at)
			}
		}
		if t.Shape = x.dims; t.Shape == nil && (json.Unmarshal(x.Shape, &t.Shape) != nil || t.Shape == nil) {
			return nil, invalid(field(), "shape is %.60s, want an array of whole numbers", orEmpty(x.Shape))
		}
		if len(t.Shape) > MaxRank {
			return nil, invalid(field(), "has %d dimensions, at most %d are taken", len(t.Shape), MaxRank)
		}
		n, err := tensor.Elements(t.Shape, MaxElements)
		if err != nil {
			return nil, invalid(field(), "%v", err)
		}
		var shared *Shared
		if x.Parameters.shared() {
			if shared, err = sharedOf(field(), jsonParameter(x.Parameters)); err != nil {
				return nil, err
			}
		}
		size, binary := x.Parameters.get("binary_data_size")
		switch {
		case shared != nil && (binary || len(x.Data) > 0):
			return nil, invalid(field(), "has data and is in shared memory: use one of them")
		case shared != nil:
			if err := shared.fetch(field(), t, regions); err != nil {
				return nil, err
			}
		case binary && len(x.Data) > 0:
			return nil, invalid(field(), "has data and binary_data_size: use one of them")
		case binary:
			bytes, ok := scalarValue(size).(int64)
			if !ok || bytes < 0 || bytes > int64(len(blocks)) {
				return nil, invalid(field(), "binary_data_size is %s, %d bytes are left of the body", size, len(blocks))
			}
			t.Data, blocks = blocks[:bytes:bytes], blocks[bytes:]
			if err := t.Validate(); err != nil {
				return nil, invalid(field(), "%v", err)
			}
		case len(x.Data) > 0:
			if elements += min(n, commas(x.Data)+1); elements > bounds.Elements {
				return nil, bounds.errElements()
			}
			if t.Data, err = scanData(t.DType, n, x.Data); err != nil {
				return nil, invalid(field(), "%v", err)
			}
		default:
			return nil, invalid(field(), "has neither data nor binary_data_size")
		}
	}
	if len(blocks) > 0 {
		return nil, invalid("", "%d bytes are left behind the last binary tensor", len(blocks))
	}
	return out, nil
}

func orEmpty(b []byte) string {
	if len(b) == 0 {
		return "missing"
	}
	return string(b)
}

// DecodeRESTResponse decodes an answer. Binary tensors alias body.
func DecodeRESTResponse(body []byte, headerLength int) (*RESTResponse, error) {
	head, blocks, err := split(body, headerLength)
	if err != nil {
		return nil, err
	}
	bounds := Bounds{}.WithDefaults()
	var m restMessage
	if err := parse(head, &bounds, &m); err != nil {
		return nil, err
	}
	r := &RESTResponse{ModelName: m.ModelName, ModelVersion: m.ModelVersion, ID: m.ID}
	for _, p := range m.Parameters {
		r.Params = append(r.Params, Param{p.name, scalarValue(p.value)})
	}
	sort.Slice(r.Params, func(a, b int) bool { return r.Params[a].Name < r.Params[b].Name })
	r.Outputs, err = decodeTensors("outputs", m.Outputs, blocks, &bounds, nil)
	return r, err
}

// ErrorBody is the body of an error: always a string, never empty.
func ErrorBody(text string) []byte {
	if text == "" {
		text = "unknown error"
	}
	b, err := json.Marshal(map[string]string{"error": text})
	if err != nil {
		return []byte(`{"error":"unknown error"}`)
	}
	return b
}
