package oip

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sluice-serving/sluice/tensor"
)

// AppendV1 appends the answer to a request of the protocol v1: a list of rows as "predictions", or the outputs whole as
// "outputs". One output stands there without its name.
func AppendV1(b []byte, outputs []tensor.Tensor, rows bool) ([]byte, error) {
	list, err := v1Outputs(outputs)
	if err != nil {
		return nil, invalid("", "output %v: ask with the protocol v2 for binary data", err)
	}
	if !rows {
		b = appendOutputs(append(b, `{"outputs":`...), list, 0)
		return append(b, '}'), nil
	}
	b = append(b, `{"predictions":[`...)
	n, err := rowsOf(outputs)
	if err != nil {
		return nil, err
	}
	for row := range n {
		if row > 0 {
			b = append(b, ',')
		}
		b = appendOutputs(b, list, 1)
	}
	return append(b, `]}`...), nil
}

// AppendV1Request appends a request of the protocol v1, with every input whole, by its name.
func AppendV1Request(b []byte, inputs []tensor.Tensor) ([]byte, error) {
	list, err := v1Outputs(inputs)
	if err != nil {
		return nil, invalid("", "input %v: the protocol v1 cannot carry it", err)
	}
	b = appendNamed(append(b, `{"inputs":`...), list, 0)
	return append(b, '}'), nil
}

// v1Outputs returns tensors to write.
func v1Outputs(tensors []tensor.Tensor) ([]v1Output, error) {
	list := make([]v1Output, len(tensors))
	for k := range tensors {
		if list[k].Tensor = tensors[k]; list[k].DType == tensor.FP16 || list[k].DType == tensor.BF16 {
			return nil, fmt.Errorf("%q is %s, which has no JSON form", list[k].Name, list[k].DType)
		}
		list[k].binary = tensors[k].DType == tensor.Bytes && (strings.HasSuffix(tensors[k].Name, "_bytes") ||
			!isText(tensors[k].Data))
	}
	return list, nil
}

// rowsOf is how many rows outputs have.
func rowsOf(outputs []tensor.Tensor) (n int64, err error) {
	for k := range outputs {
		t := &outputs[k]
		if len(t.Shape) == 0 || k > 0 && t.Shape[0] != n {
			return 0, invalid(v1Asks.rows, `output %q has shape %v, which has no row for each item: send "inputs"`,
				t.Name, tensor.Dims(t.Shape))
		}
		n = t.Shape[0]
	}
	return n, nil
}

// isText reports whether all elements of a BYTES block are UTF-8.
func isText(data []byte) bool {
	text := true
	_ = tensor.EachBytes(data, func(e []byte) { text = text && utf8.Valid(e) }) // the block was made here
	return text
}

// v1Output is an output while it is written. Data is what is left of it.
type v1Output struct {
	tensor.Tensor
	binary bool // its elements are written in base64
}

// appendOutputs writes what the outputs have next, without their first from dimensions.
func appendOutputs(b []byte, list []v1Output, from int) []byte {
	if len(list) == 1 {
		return list[0].append(b, list[0].Shape[from:])
	}
	return appendNamed(b, list, from)
}

// appendNamed is appendOutputs with a name for each, also for one alone.
func appendNamed(b []byte, list []v1Output, from int) []byte {
	b = append(b, '{')
	for k := range list {
		if k > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, list[k].Name), ':')
		b = list[k].append(b, list[k].Shape[from:])
	}
	return append(b, '}')
}

// append writes the next elements as lists of a shape that lie in each other.
func (o *v1Output) append(b []byte, shape []int64) []byte {
	if len(shape) == 0 {
		return o.appendElement(b)
	}
	b = append(b, '[')
	for k := range shape[0] {
		if k > 0 {
			b = append(b, ',')
		}
		b = o.append(b, shape[1:])
	}
	return append(b, ']')
}

func (o *v1Output) appendElement(b []byte) []byte {
	if o.DType != tensor.Bytes {
		b = appendNumber(b, o.DType, o.Data)
		o.Data = o.Data[o.DType.Size():]
		return b
	}
	end := 4 + binary.LittleEndian.Uint32(o.Data)
	element := o.Data[4:end]
	o.Data = o.Data[end:]
	if !o.binary {
		return appendString(b, string(element))
	}
	b = append(b, `{"b64":"`...)
	b = base64.StdEncoding.AppendEncode(slices.Grow(b, base64.StdEncoding.EncodedLen(len(element))), element)
	return append(b, `"}`...)
}
