package server

import (
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/api/memory"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// largeMessage is the size from which the tensors of a message are not copied between its bytes and its fields, in
// bytes. Smaller ones are decoded and encoded as a whole, which is less work.
const largeMessage = 64 << 10

// Field numbers of raw_input_contents in a ModelInferRequest and of raw_output_contents in a ModelInferResponse.
const (
	rawInput  protowire.Number = 7
	rawOutput protowire.Number = 6
)

// gatherAligned puts a message into one piece of memory, so that its first raw contents begin at a multiple of eight
// bytes: runtimes copy tensors that do not.
func gatherAligned(data mem.BufferSlice) []byte {
	pad := 0
	if len(data) > 0 {
		pad = memory.Padding(rawOffset(data[0].ReadOnlyData()))
	}
	b := make([]byte, pad+data.Len())[pad:]
	data.CopyTo(b)
	return b
}

// rawOffset is where the first raw contents of a request begin, from the beginning of its bytes; 0 where these are not
// enough to tell.
func rawOffset(b []byte) int {
	for at := 0; at < len(b); {
		field, kind, n := protowire.ConsumeTag(b[at:])
		if n < 0 {
			return 0
		}
		at += n
		if field == rawInput && kind == protowire.BytesType {
			if _, n = protowire.ConsumeVarint(b[at:]); n < 0 {
				return 0
			}
			return at + n
		}
		if n = protowire.ConsumeFieldValue(field, kind, b[at:]); n < 0 {
			return 0
		}
		at += n
	}
	return 0
}

// request decodes a request. The raw contents of a large one alias wire, which then has memory of its own.
func (c *boundedCodec) request(wire mem.Buffer, r *pb.ModelInferRequest) error {
	if wire.Len() < largeMessage {
		return c.CodecV2.Unmarshal(mem.BufferSlice{wire}, r)
	}
	rest, raw, ok := splitRaw(wire.ReadOnlyData())
	if !ok {
		return c.CodecV2.Unmarshal(mem.BufferSlice{wire}, r) // it says what is wrong
	}
	if err := proto.Unmarshal(rest, r); err != nil {
		return err
	}
	r.RawInputContents = raw
	return nil
}

// splitRaw separates the raw contents of a request, not copied, from its other fields. It returns false for bytes that
// are no message.
func splitRaw(b []byte) (rest []byte, raw [][]byte, ok bool) {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, nil, false
		}
		size := protowire.ConsumeFieldValue(field, kind, b[n:])
		if size < 0 {
			return nil, nil, false
		}
		if field == rawInput && kind == protowire.BytesType {
			data, _ := protowire.ConsumeBytes(b[n:])
			raw = append(raw, data[:len(data):len(data)])
		} else {
			rest = append(rest, b[:n+size]...)
		}
		b = b[n+size:]
	}
	return rest, raw, true
}

// Marshal implements encoding.CodecV2. The raw contents of a large answer are sent from where they are.
func (c *boundedCodec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(*pb.ModelInferResponse)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	size := 0
	for _, data := range r.RawOutputContents {
		size += len(data)
	}
	if size < largeMessage {
		return c.CodecV2.Marshal(v)
	}
	raw := r.RawOutputContents
	r.RawOutputContents = nil // nobody else has the message: its handler has returned
	out, err := c.CodecV2.Marshal(r)
	r.RawOutputContents = raw
	if err != nil {
		return nil, err
	}
	for _, data := range raw {
		head := protowire.AppendVarint(protowire.AppendTag(nil, rawOutput, protowire.BytesType), uint64(len(data)))
		out = append(out, mem.SliceBuffer(head), mem.SliceBuffer(data))
	}
	return out, nil
}
