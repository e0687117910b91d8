package oip

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/sluice-serving/sluice/tensor"
)

// v1Column is an input while it is read.
type v1Column struct {
	spec *tensor.Spec
	dims []int64 // the lengths of lists that were read, by depth
	rank int     // the depth of its elements; -1 until the first
	data []byte
}

// openDim is the length of a list whose end was not read yet.
const openDim = -1

// tensor returns the input. Clients of a model with one value for each item leave out the brackets around it.
func (c *v1Column) tensor() tensor.Tensor {
	if want := c.spec.Shape; len(c.dims) == 1 && len(want) == 2 && want[1] == 1 {
		c.dims = append(c.dims, 1)
	}
	return tensor.Tensor{Name: c.spec.Name, DType: c.spec.DType, Shape: c.dims, Data: c.data}
}

// open begins an input.
func (r *v1Reader) open(name []byte) (*v1Column, error) {
	s := r.spec(name)
	switch {
	case s == nil:
		return nil, invalid(r.form, "%.100q is no input of the model, which takes %s", name, r.names())
	case s.DType == tensor.FP16 || s.DType == tensor.BF16:
		return nil, invalid(r.form, "%q is %s, which has no JSON form: send it as binary data of the protocol v2",
			name, s.DType)
	case len(r.columns) >= r.bounds.Tensors:
		return nil, r.bounds.errTensors()
	}
	if r.columns == nil {
		r.columns = make([]v1Column, 0, len(r.inputs))
	}
	r.columns = append(r.columns, v1Column{spec: s, rank: -1, dims: make([]int64, 0, len(s.Shape)+1)})
	return &r.columns[len(r.columns)-1], nil
}

// whole reads an input with all its items.
func (r *v1Reader) whole(c *v1Column) error {
	if r.at < len(r.b) && r.b[r.at] == '[' {
		end, err := skipValue(r.b, r.at)
		if err != nil {
			return err
		}
		n := min(commas(r.b[r.at:end])+1, r.bounds.Elements)
		c.data = make([]byte, 0, n*int64(max(c.spec.DType.Size(), 1)))
	}
	return r.value(c, 0)
}

// value reads lists that lie in each other down to the elements. Those at one depth have one length.
func (r *v1Reader) value(c *v1Column, depth int) error {
	if r.space() >= len(r.b) {
		return r.wrong()
	}
	if r.b[r.at] != '[' {
		return r.element(c, depth)
	}
	if depth >= MaxRank {
		return errRank()
	}
	if c.rank >= 0 && depth >= c.rank {
		return r.ragged(c)
	}
	if depth == len(c.dims) {
		c.dims = append(c.dims, openDim)
	}
	n := int64(0)
	err := r.entries('[', ']', func() error {
		if depth == 0 {
			r.row = int(n)
		}
		n++
		return r.value(c, depth+1)
	})
	if err != nil {
		return err
	}
	if c.dims[depth] == openDim {
		c.dims[depth] = n
	}
	if c.dims[depth] != n {
		return r.ragged(c)
	}
	return nil
}

// field is where an input is in the request.
func (r *v1Reader) field(c *v1Column) string {
	if r.form == r.forms.rows {
		return fmt.Sprintf("%s[%d] %q", r.form, r.row, c.spec.Name)
	}
	return fmt.Sprintf("%s %q", r.form, c.spec.Name)
}

func (r *v1Reader) ragged(c *v1Column) error {
	return invalid(r.field(c), "has lists of different lengths or depths: a tensor has the same at each depth")
}

// element reads one element.
func (r *v1Reader) element(c *v1Column, depth int) (err error) {
	if len(c.dims) > depth || c.rank >= 0 && c.rank != depth {
		return r.ragged(c)
	}
	c.rank = depth
	if r.elements++; r.elements > r.bounds.Elements {
		return r.bounds.errElements()
	}
	if r.b[r.at] == '{' {
		return r.base64(c)
	}
	if c.data, r.at, err = appendElement(c.data, c.spec.DType, r.b, r.at); err != nil {
		return invalid(r.field(c), "%v", err)
	}
	return nil
}

// base64 reads {"b64": TEXT}, an element of bytes that are no text.
func (r *v1Reader) base64(c *v1Column) error {
	if c.spec.DType != tensor.Bytes {
		return invalid(r.field(c), "holds an object, want %s", c.spec.DType)
	}
	var text []byte
	r.next('{')
	key, err := r.key()
	if err == nil && string(key) == "b64" && r.next(':') {
		text, err = r.key()
	}
	if err != nil || !r.next('}') {
		return invalid(r.field(c), `holds an object, want a text or {"b64": TEXT}`)
	}
	at := len(c.data)
	if c.data, err = base64.StdEncoding.AppendDecode(append(c.data, 0, 0, 0, 0), text); err != nil {
		return invalid(r.field(c), "is no base64: %v", err)
	}
	binary.LittleEndian.PutUint32(c.data[at:], uint32(len(c.data)-at-4))
	return nil
}
