package oip

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/sluice-serving/sluice/tensor"
)

// GenerateBody turns the JSON of a generate request (Triton's generate extension) into that of an inference request:
// each key that is the name of an input becomes that input, id stays, and all others, and those of an object
// parameters, become parameters. A single value is a tensor of one element. A tensor's shape is that of the input, with
// one item where the model is batched and one open dimension filled; where that is not possible it is the shape of the
// arrays.
func GenerateBody(body []byte, inputs []tensor.Spec, batched bool, bounds Bounds) ([]byte, error) {
	bounds = bounds.WithDefaults()
	var keys map[string]json.RawMessage
	body = bytes.TrimPrefix(body, []byte("\ufeff")) // as in parse
	if err := json.Unmarshal(body, &keys); err != nil {
		return nil, wrongJSON(err)
	}
	if len(keys) > bounds.Parameters+bounds.Tensors {
		return nil, bounds.errParameters()
	}
	type input struct {
		Name     string          `json:"name"`
		Datatype string          `json:"datatype"`
		Shape    []int64         `json:"shape"`
		Data     json.RawMessage `json:"data"`
	}
	var out struct {
		ID         string                     `json:"id,omitempty"`
		Parameters map[string]json.RawMessage `json:"parameters,omitempty"`
		Inputs     []input                    `json:"inputs"`
	}
	out.Parameters = make(map[string]json.RawMessage)
	left := bounds.Elements
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		value := keys[name]
		at := slices.IndexFunc(inputs, func(s tensor.Spec) bool { return s.Name == name })
		switch {
		case at >= 0:
			shape, n, err := shapeOf(value, &inputs[at], batched, left)
			if errors.Is(err, errTooMany) {
				return nil, bounds.errElements()
			}
			if err != nil {
				return nil, err
			}
			left -= n
			if value = bytes.TrimSpace(value); value[0] != '[' {
				value = slices.Concat([]byte{'['}, value, []byte{']'})
			}
			out.Inputs = append(out.Inputs, input{name, inputs[at].DType.String(), shape, value})
		case name == "id":
			if err := json.Unmarshal(value, &out.ID); err != nil {
				return nil, invalid("id", "is %.40s, want a text", value)
			}
		case name == "parameters":
			var more map[string]json.RawMessage
			if err := json.Unmarshal(value, &more); err != nil {
				return nil, invalid("parameters", "is %.40s, want an object", value)
			}
			for key, x := range more {
				out.Parameters[key] = x
			}
		default:
			out.Parameters[name] = value
		}
	}
	return json.Marshal(&out)
}

var errTooMany = errors.New("too many elements")

// shapeOf is the shape of an input given as JSON, and how many elements it has, at most limit.
func shapeOf(value json.RawMessage, s *tensor.Spec, batched bool, limit int64) (shape []int64, n int64, err error) {
	dims, n, err := nested(value, s.Name, limit)
	if err != nil {
		return nil, 0, err
	}
	if s.Shape != nil {
		shape = slices.Clone(s.Shape)
		if batched && len(shape) > 0 {
			shape[0] = 1
		}
		open, known := -1, int64(1)
		for k, d := range shape {
			switch {
			case d >= 0:
				known *= d
			case open >= 0:
				return withItem(dims, len(shape)), n, nil
			default:
				open = k
			}
		}
		switch {
		case open >= 0 && known > 0 && n%known == 0:
			shape[open] = n / known
			return shape, n, nil
		case open < 0 && known == n:
			return shape, n, nil
		case open < 0 && batched && known > 0 && n%known == 0 && len(dims) == len(shape):
			return dims, n, nil // several items
		}
		return nil, 0, invalid(s.Name, "has %d elements, the model takes %v", n, tensor.Dims(s.Shape))
	}
	return dims, n, nil
}

// withItem puts the dimension of one item in front of the dimensions of arrays where one is missing.
func withItem(dims []int64, rank int) []int64 {
	if len(dims) == rank-1 {
		return append([]int64{1}, dims...)
	}
	return dims
}

// nested counts the elements of arrays that lie in each other. dims are their lengths: those of the first at each
// level, whatever the others have; the decoder of tensors compares the number of elements.
func nested(value json.RawMessage, name string, limit int64) (dims []int64, n int64, err error) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	depth, first := 0, true
	var counts []int64
	count := func() {
		if depth > 0 {
			counts[depth-1]++
		}
	}
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, wrongJSON(err)
		}
		switch t {
		case json.Delim('['):
			count()
			if depth++; depth > maxDepth {
				return nil, 0, errRank()
			}
			counts = append(counts[:depth-1], 0)
			if len(dims) < depth {
				dims = append(dims, -1)
			}
		case json.Delim(']'):
			if depth--; dims[depth] < 0 {
				dims[depth] = counts[depth]
			}
		case json.Delim('{'), json.Delim('}'), nil:
			return nil, 0, invalid(name, "holds %v, want numbers, texts, true or false, or arrays of them", t)
		default:
			count()
			first = false
			if n++; n > limit {
				return nil, 0, errTooMany
			}
		}
	}
	if len(dims) == 0 && !first {
		dims = []int64{1}
	}
	return dims, n, nil
}

// GenerateAnswer writes one answer to a generate request: the model, its version, the request's id, parameters, and
// each output by its name; an output of one element as a single value, others as an array.
func GenerateAnswer(r *RESTResponse) ([]byte, error) {
	body, _, err := EncodeREST(r, &RESTRequest{ID: r.ID})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteByte('{')
	first := true
	add := func(name string, value []byte) {
		if !first {
			b.WriteByte(',')
		}
		first = false
		key, _ := json.Marshal(name)
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	text := func(name, value string) {
		j, _ := json.Marshal(value)
		add(name, j)
	}
	taken := func(name string) bool {
		return slices.ContainsFunc(r.Outputs, func(t tensor.Tensor) bool { return t.Name == name })
	}
	for _, x := range [...]struct{ name, value string }{
		{"model_name", r.ModelName}, {"model_version", r.ModelVersion}, {"id", r.ID},
	} {
		if x.value != "" && !taken(x.name) {
			text(x.name, x.value)
		}
	}
	for _, p := range r.Params {
		if j, err := json.Marshal(p.Value); err == nil && !taken(p.Name) {
			add(p.Name, j)
		}
	}
	data, err := dataOf(body, len(r.Outputs))
	if err != nil {
		return nil, err
	}
	for k := range r.Outputs {
		value := data[k]
		if n, err := tensor.Elements(r.Outputs[k].Shape, MaxElements); err == nil && n == 1 {
			value = bytes.TrimSuffix(bytes.TrimPrefix(value, []byte{'['}), []byte{']'})
		}
		add(r.Outputs[k].Name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// dataOf cuts the data of each output out of an encoded answer. It need not be JSON for encoding/json, because of NaN.
func dataOf(body []byte, outputs int) ([][]byte, error) {
	bounds := Bounds{Head: len(body) + 1, Tensors: outputs + 1, Elements: int64(len(body)) + 1}.WithDefaults()
	_, data, err := cutData(body, &bounds)
	if err != nil {
		return nil, err
	}
	if len(data) != outputs {
		return nil, Errorf(Internal, "", "%s outputs have no data", strconv.Itoa(outputs-len(data)))
	}
	out := make([][]byte, len(data))
	for k := range data {
		out[k] = data[k]
	}
	return out, nil
}
