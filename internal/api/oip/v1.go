package oip

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/tensor"
)

// V1Request is a request of the protocol v1, as TensorFlow Serving and KServe have it.
type V1Request struct {
	Inputs []tensor.Tensor
	// Rows says that the request has "instances", a row for each item. Its answer has "predictions". Other requests
	// have "inputs", a column for each input. Their answer has "outputs".
	Rows   bool
	Params Params
}

// v1Forms are the members of a message that have its tensors: in a row for each item, and each in one piece.
type v1Forms struct{ message, rows, columns string }

var (
	v1Asks    = v1Forms{"request", "instances", "inputs"}
	v1Answers = v1Forms{"answer", "predictions", "outputs"}
)

// DecodeV1 decodes a request. The protocol v1 has no datatypes: they are those of the model's inputs, and of the
// optional ones that it takes by name. A request without inputs is returned with ErrNoInputs.
func DecodeV1(body []byte, inputs, optional []tensor.Spec, bounds Bounds) (*V1Request, error) {
	r := v1Reader{forms: v1Asks, inputs: inputs, optional: optional, req: new(V1Request)}
	if err := r.read(body, bounds); err != nil {
		return nil, err
	}
	if len(r.req.Inputs) == 0 {
		return r.req, ErrNoInputs
	}
	return r.req, r.req.Params.check()
}

// DecodeV1Answer decodes the answer to a request of the protocol v1. The datatypes are those of the outputs.
func DecodeV1Answer(body []byte, outputs []tensor.Spec, bounds Bounds) ([]tensor.Tensor, error) {
	r := v1Reader{forms: v1Answers, inputs: outputs, req: new(V1Request)}
	if err := r.read(body, bounds); err != nil {
		return nil, err
	}
	return r.req.Inputs, nil
}

// read reads a message.
func (r *v1Reader) read(body []byte, bounds Bounds) error {
	bounds = bounds.WithDefaults()
	r.b, r.bounds = bytes.TrimPrefix(body, []byte("\ufeff")), &bounds
	if err := r.members(r.member); err != nil {
		return err
	}
	switch {
	case r.space() != len(r.b):
		return r.wrong()
	case len(r.b)-r.cut > bounds.Head:
		return bounds.errHead()
	case r.form == "":
		return invalid("", "has neither %q nor %q", r.forms.rows, r.forms.columns)
	}
	r.req.Rows = r.form == r.forms.rows
	for k := range r.columns {
		r.req.Inputs = append(r.req.Inputs, r.columns[k].tensor())
	}
	return nil
}

// v1Reader reads a message in one pass. Values go straight into the data of their tensors.
type v1Reader struct {
	headReader
	forms            v1Forms
	inputs, optional []tensor.Spec
	req              *V1Request
	form             string // one of forms, "" until one of them was read
	columns          []v1Column
	row              int   // that is read, of those for each item
	elements         int64 // that were read
}

// wrong is the error for something that JSON does not have here.
func (r *v1Reader) wrong() error {
	if r.at >= len(r.b) {
		return invalid("", "the %s is not the JSON that is wanted: it ends too early", r.forms.message)
	}
	return invalid("", "the %s is not the JSON that is wanted: %q at byte %d", r.forms.message, r.b[r.at], r.at)
}

// entries reads what is between two brackets.
func (r *v1Reader) entries(open, end byte, entry func() error) (err error) {
	if !r.list(open, end, func() bool { err = entry(); return err == nil }) && err == nil {
		err = r.wrong()
	}
	return err
}

// members reads an object. value reads the value of a member.
func (r *v1Reader) members(value func(key []byte) error) error {
	return r.entries('{', '}', func() error {
		key, err := r.key()
		if err != nil {
			return err
		}
		if !r.next(':') {
			return r.wrong()
		}
		r.space()
		return value(key)
	})
}

// key reads a string, with or without escapes.
func (r *v1Reader) key() ([]byte, error) {
	from := r.space()
	if from >= len(r.b) || r.b[from] != '"' {
		return nil, r.wrong()
	}
	end, err := skipString(r.b, from)
	if err != nil {
		return nil, err
	}
	r.at = end
	text := r.b[from+1 : end-1]
	if isPlain(text) {
		return text, nil
	}
	if len(text) > r.bounds.Head {
		return nil, r.bounds.errHead()
	}
	var s string
	if err := json.Unmarshal(r.b[from:end], &s); err != nil {
		return nil, wrongJSON(err)
	}
	return []byte(s), nil
}

// member reads a member of the message.
func (r *v1Reader) member(key []byte) error {
	switch string(key) {
	case r.forms.rows, r.forms.columns:
		if r.form != "" {
			return invalid(string(key), "is not alone: send either %q or %q, once", r.forms.rows, r.forms.columns)
		}
		r.form = string(key)
		from := r.at
		read := r.byColumn
		if r.form == r.forms.rows {
			read = r.byRow
		}
		err := read()
		r.cut += r.at - from
		return err
	case "signature_name":
		name, ok := r.text()
		if !ok || name != "" && name != defaultSignature {
			return invalid("signature_name", "want %q: models have no other signature", defaultSignature)
		}
		return nil
	case "parameters":
		fields, ok := r.parameters()
		if !ok {
			return invalid("parameters", "want an object of at most %d numbers, texts, true or false",
				min(r.bounds.Parameters, mostPlain))
		}
		for _, f := range fields {
			if err := r.req.Params.Set(f.name, scalarValue(f.value)); err != nil {
				return err
			}
		}
		return nil
	}
	return r.pass()
}

// pass passes over a value that means nothing here.
func (r *v1Reader) pass() error {
	from, depth := r.at, 0
	for r.at < len(r.b) {
		switch c := r.b[r.at]; c {
		case '"':
			end, err := skipString(r.b, r.at)
			if err != nil {
				return err
			}
			r.at = end - 1
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth > 0 && c != ',' {
				depth--
			} else if depth == 0 {
				return r.checkPassed(from)
			}
		}
		r.at++
	}
	return r.wrong()
}

// checkPassed returns an error unless what was passed over is small, and JSON.
func (r *v1Reader) checkPassed(from int) error {
	if r.at-from > r.bounds.Head {
		return r.bounds.errHead()
	}
	if !json.Valid(r.b[from:r.at]) {
		return r.wrong()
	}
	return nil
}

// byColumn reads "inputs": an object of inputs, or the value of the only one.
func (r *v1Reader) byColumn() error {
	if !r.named() {
		return r.lone()
	}
	return r.members(func(key []byte) error {
		if r.column(key) != nil {
			return invalid(r.form, "has %.100q twice", key)
		}
		c, err := r.open(key)
		if err != nil {
			return err
		}
		return r.whole(c)
	})
}

// byRow reads "instances": a list of objects of inputs, or of values of the only one.
func (r *v1Reader) byRow() error {
	from := r.at
	if !r.next('[') {
		return invalid(r.form, "want a list with a row for each item")
	}
	if r.next(']') {
		return invalid(r.form, "is empty, want at least one")
	}
	r.space()
	named := r.named()
	if r.at = from; !named {
		return r.lone()
	}
	return r.entries('[', ']', func() error {
		begin := r.space()
		if err := r.members(r.cell); err != nil {
			return err
		}
		r.row++
		for k := range r.columns {
			c := &r.columns[k]
			if c.dims[0] != int64(r.row) {
				return invalid(fmt.Sprintf("%s[%d]", r.form, r.row-1), "each row has each input once, and %q is "+
					"missing in this one or those before it, or is here twice", c.spec.Name)
			}
			if r.row == 1 { // the others will be about as long
				more := len(r.b[r.at:]) / (r.at - begin)
				c.data = slices.Grow(c.data, more*len(c.data))
			}
		}
		return nil
	})
}

// cell reads an input of one row.
func (r *v1Reader) cell(key []byte) error {
	c := r.column(key)
	if c == nil {
		var err error
		if c, err = r.open(key); err != nil {
			return err
		}
		c.dims = append(c.dims, 0)
	}
	c.dims[0]++
	return r.value(c, 1)
}

// named reports whether an object of inputs begins here. A model's only input may be a value in base64.
func (r *v1Reader) named() bool {
	if r.at >= len(r.b) || r.b[r.at] != '{' {
		return false
	}
	look := r.headReader
	look.next('{')
	key, _ := look.plain()
	return string(key) != "b64" || r.spec(key) != nil
}

// lone reads the value of the only input.
func (r *v1Reader) lone() error {
	if len(r.inputs) != 1 {
		return invalid(r.form, "names no input, the model takes %s", r.names())
	}
	c, err := r.open([]byte(r.inputs[0].Name))
	if err != nil {
		return err
	}
	return r.whole(c)
}

func (r *v1Reader) names() string {
	var names []string
	for k := range r.inputs {
		names = append(names, fmt.Sprintf("%q", r.inputs[k].Name))
	}
	return strings.Join(names, ", ")
}

// column returns an input that has begun; nil for another.
func (r *v1Reader) column(name []byte) *v1Column {
	for k := range r.columns {
		if c := &r.columns[k]; c.spec.Name == string(name) {
			return c
		}
	}
	return nil
}

// spec returns an input of the model; nil for another name.
func (r *v1Reader) spec(name []byte) *tensor.Spec {
	for _, list := range [...][]tensor.Spec{r.inputs, r.optional} {
		for k := range list {
			if list[k].Name == string(name) {
				return &list[k]
			}
		}
	}
	return nil
}
