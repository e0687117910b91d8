package oip

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// CheckRequest returns an error for a gRPC ModelInferRequest, still in its wire form, that holds more than the bounds
// allow. An empty entry takes two bytes on the wire and hundreds once it is decoded.
func (b Bounds) CheckRequest(wire []byte) error {
	c := wireCounter{bounds: b.WithDefaults()}
	return c.message(wire, requestFields)
}

// CheckResponse is CheckRequest for a ModelInferResponse.
func (b Bounds) CheckResponse(wire []byte) error {
	c := wireCounter{bounds: b.WithDefaults()}
	return c.message(wire, responseFields)
}

// CheckParameters returns an error for a message whose field number at holds more parameters than the bounds allow.
func (b Bounds) CheckParameters(wire []byte, at int) error {
	c := wireCounter{bounds: b.WithDefaults()}
	return c.message(wire, map[protowire.Number]wireField{protowire.Number(at): wireParameter})
}

// wireField says how the entries of a field are counted.
type wireField uint8

const (
	wireUncounted wireField = iota
	wireParameter
	wireTensor
	wireRequested // an output that is asked for
	wireBlock     // raw contents
	wireDimension // of a shape, as varints
	wireContents
	wireVarints // elements
	wireFixed32
	wireFixed64
	wireBytes
)

// The fields of the messages in internal/api/oip/pb, by number.
var (
	requestFields = map[protowire.Number]wireField{
		4: wireParameter, 5: wireTensor, 6: wireRequested, 7: wireBlock,
	}
	responseFields  = map[protowire.Number]wireField{4: wireParameter, 5: wireTensor, 6: wireBlock}
	tensorFields    = map[protowire.Number]wireField{3: wireDimension, 4: wireParameter, 5: wireContents}
	requestedFields = map[protowire.Number]wireField{2: wireParameter}
	contentsFields  = map[protowire.Number]wireField{
		1: wireVarints, 2: wireVarints, 3: wireVarints, 4: wireVarints, 5: wireVarints, 6: wireFixed32, 7: wireFixed64,
		8: wireBytes,
	}
)

// wireCounter counts the entries of one message.
type wireCounter struct {
	bounds   Bounds
	elements int64 // of all tensors
}

// counts are the entries of one message, without those of its parts.
type counts struct{ parameters, tensors, requested, blocks, dimensions int }

func (c *wireCounter) message(b []byte, fields map[protowire.Number]wireField) error {
	var n counts
	return c.part(b, fields, &n)
}

func (c *wireCounter) part(b []byte, fields map[protowire.Number]wireField, n *counts) error {
	for len(b) > 0 {
		number, kind, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			return invalid("", "the message is no valid protocol buffer")
		}
		b = b[tag:]
		size := protowire.ConsumeFieldValue(number, kind, b)
		if size < 0 {
			return invalid("", "the message is no valid protocol buffer")
		}
		value := b[:size]
		b = b[size:]
		if err := c.count(fields[number], kind, value, n); err != nil {
			return err
		}
	}
	return nil
}

// count counts one occurrence of a field. value has the length prefix of fields that have one.
func (c *wireCounter) count(f wireField, kind protowire.Type, value []byte, n *counts) error {
	inner := value
	if kind == protowire.BytesType {
		inner, _ = protowire.ConsumeBytes(value)
	}
	switch f {
	case wireParameter:
		if n.parameters++; n.parameters > c.bounds.Parameters {
			return c.bounds.errParameters()
		}
	case wireTensor:
		if n.tensors++; n.tensors > c.bounds.Tensors {
			return c.bounds.errTensors()
		}
		return c.message(inner, tensorFields)
	case wireRequested:
		if n.requested++; n.requested > c.bounds.Tensors {
			return c.bounds.errTensors()
		}
		return c.message(inner, requestedFields)
	case wireBlock:
		if n.blocks++; n.blocks > c.bounds.Tensors {
			return c.bounds.errTensors()
		}
	case wireDimension:
		if n.dimensions += int(packed(kind, inner, 0)); n.dimensions > MaxRank {
			return errRank()
		}
	case wireContents: // given several times, the contents of a tensor add up
		return c.part(inner, contentsFields, n)
	case wireVarints:
		c.elements += packed(kind, inner, 0)
	case wireFixed32:
		c.elements += packed(kind, inner, 4)
	case wireFixed64:
		c.elements += packed(kind, inner, 8)
	case wireBytes:
		c.elements++
	}
	if c.elements > c.bounds.Elements {
		return c.bounds.errElements()
	}
	return nil
}

// packed returns the number of values in an occurrence of a repeated number: one, or a block of them. width is the
// bytes of each, 0 for varints.
func packed(kind protowire.Type, block []byte, width int) (n int64) {
	switch {
	case kind != protowire.BytesType:
		return 1
	case width > 0:
		return int64(len(block) / width)
	}
	for _, x := range block {
		if x < 0x80 { // the last byte of a value
			n++
		}
	}
	return n
}
