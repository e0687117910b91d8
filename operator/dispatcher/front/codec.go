package front

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// frame is a message as it came.
type frame struct{ data mem.BufferSlice }

// free gives the memory of a frame back.
func (f *frame) free() {
	f.data.Free()
	f.data = nil
}

// rawCodec passes frames on as they are. Other messages, of the health service, are encoded as usual.
type rawCodec struct{ encoding.CodecV2 }

func protoCodec() encoding.CodecV2 { return encoding.GetCodecV2(proto.Name) }

// Marshal implements encoding.CodecV2. gRPC frees what it returns.
func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*frame); ok {
		f.data.Ref()
		return f.data, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2. gRPC frees data afterwards.
func (c rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if f, ok := v.(*frame); ok {
		data.Ref()
		f.data = data
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

// The messages of the protocol have the name of their model in field 1, but for two about the repository.
const (
	fieldModel           protowire.Number = 1
	fieldRepositoryModel protowire.Number = 2
)

// textField returns a field of a message that holds text; "" where there is none, or the bytes are no message. It reads
// no further than the field, which clients write among the first.
func textField(data mem.BufferSlice, field protowire.Number) string {
	b, rest := []byte(nil), data
	if len(rest) > 0 {
		b, rest = rest[0].ReadOnlyData(), rest[1:]
	}
	whole := len(rest) == 0
	for {
		text, found, complete := scanText(b, field)
		if found || complete || whole {
			return text
		}
		b, whole = data.Materialize(), true // a field lies across two buffers
	}
}

// scanText looks for a text field. complete says that all of b was read.
func scanText(b []byte, field protowire.Number) (text string, found, complete bool) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return "", false, false
		}
		if number == field && kind == protowire.BytesType {
			x, m := protowire.ConsumeBytes(b[n:])
			if m < 0 {
				return "", false, false
			}
			return string(x), true, false
		}
		m := protowire.ConsumeFieldValue(number, kind, b[n:])
		if m < 0 {
			return "", false, false
		}
		b = b[n+m:]
	}
	return "", false, true
}
