package picker

import (
	"bytes"

	modes "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Every pick has a message of request headers and an answer that says where the request goes. These two are read and
// written here field by field, without messages in between; all others as usual. TestWire holds that both ways are the
// same.

// inbound is a message of the gateway: the headers of a request, or any message in full.
type inbound struct {
	full *extproc.ProcessingRequest // nil where head is all that there is
	head requestHead
	// duplex and duplet are as in request; configured says that the message has them.
	configured, duplex, duplet bool
}

// requestHead is what is read of the headers of a request.
type requestHead struct {
	path  string
	grpc  bool // the content type says so
	other bool // a method that is not POST
	end   bool // there is no body
}

// outbound is an answer: in full, or encoded.
type outbound struct {
	full *extproc.ProcessingResponse
	raw  []byte
}

// codec reads and writes these. Other messages, of the health service, are encoded as usual.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if o, ok := v.(*outbound); ok {
		if o.full == nil {
			return mem.BufferSlice{mem.SliceBuffer(o.raw)}, nil
		}
		v = o.full
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*inbound)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	*in = inbound{}
	if len(data) == 1 && in.read(data[0].ReadOnlyData()) {
		return nil
	}
	*in = inbound{full: &extproc.ProcessingRequest{}}
	return c.CodecV2.Unmarshal(data, in.full)
}

// Fields of the messages of external processing.
const (
	fieldRequestHeaders  protowire.Number = 2  // of ProcessingRequest
	fieldMetadata        protowire.Number = 8  // of ProcessingRequest and ProcessingResponse
	fieldProtocolConfig  protowire.Number = 11 // of ProcessingRequest
	fieldRequestMode     protowire.Number = 1  // of ProtocolConfiguration
	fieldResponseMode    protowire.Number = 2
	fieldHeaders         protowire.Number = 1 // of HttpHeaders, and of HeaderMap
	fieldAttributes      protowire.Number = 2 // of HttpHeaders
	fieldEnd             protowire.Number = 3 // of HttpHeaders
	fieldKey             protowire.Number = 1 // of HeaderValue, and of an entry of a map
	fieldValue           protowire.Number = 2
	fieldRaw             protowire.Number = 3 // of HeaderValue
	fieldResponse        protowire.Number = 1 // of ProcessingResponse: request_headers; of HeadersResponse
	fieldMutation        protowire.Number = 2 // of CommonResponse
	fieldSet             protowire.Number = 1 // of HeaderMutation
	fieldRemove          protowire.Number = 2
	fieldHeader          protowire.Number = 1 // of HeaderValueOption
	fieldAction          protowire.Number = 3
	fieldFields          protowire.Number = 1 // of Struct
	fieldText            protowire.Number = 3 // of Value
	fieldStruct          protowire.Number = 5
	actionOverwriteOrAdd                  = 2 // HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
)

// read takes a message of request headers without anything that needs it in full; false for every other one.
func (in *inbound) read(b []byte) bool {
	there := false
	return each(b, func(number protowire.Number, kind protowire.Type, value []byte, n uint64) bool {
		switch {
		case number == fieldRequestHeaders && kind == protowire.BytesType && !there:
			there = true
			return in.head.read(value)
		case number == fieldProtocolConfig && kind == protowire.BytesType && !in.configured:
			in.configured = true
			return in.modes(value)
		case number == fieldMetadata && kind == protowire.BytesType:
			return len(value) == 0 // a subset may be in it
		}
		return false
	}) && there
}

// modes reads a ProtocolConfiguration.
func (in *inbound) modes(b []byte) bool {
	return each(b, func(number protowire.Number, kind protowire.Type, _ []byte, n uint64) bool {
		full := n == uint64(modes.ProcessingMode_FULL_DUPLEX_STREAMED)
		switch {
		case kind != protowire.VarintType:
			return false
		case number == fieldRequestMode:
			in.duplex = full
		case number == fieldResponseMode:
			in.duplet = full
		}
		return true
	})
}

// read reads an HttpHeaders.
func (h *requestHead) read(b []byte) bool {
	return each(b, func(number protowire.Number, kind protowire.Type, value []byte, n uint64) bool {
		switch {
		case number == fieldAttributes: // a message that would have to be read, too
			return false
		case number == fieldEnd && kind == protowire.VarintType:
			h.end = n != 0
		case number == fieldHeaders && kind == protowire.BytesType:
			return each(value, func(number protowire.Number, kind protowire.Type, value []byte, _ uint64) bool {
				return number != fieldHeaders || kind == protowire.BytesType && h.header(value)
			})
		}
		return true
	})
}

var (
	namePath   = []byte(":path")
	nameMethod = []byte(":method")
	nameKind   = []byte("content-type")
	methodPost = []byte("POST")
	kindGRPC   = []byte("application/grpc")
)

// header reads a HeaderValue.
func (h *requestHead) header(b []byte) bool {
	var key, value, raw []byte
	ok := each(b, func(number protowire.Number, kind protowire.Type, x []byte, _ uint64) bool {
		if kind != protowire.BytesType {
			return number > fieldRaw
		}
		switch number {
		case fieldKey:
			key = x
		case fieldValue:
			value = x
		case fieldRaw:
			raw = x
		}
		return true
	})
	if !ok {
		return false
	}
	if len(raw) > 0 {
		value = raw
	}
	h.set(key, value)
	return true
}

// set takes a header, the last of several with a name.
func (h *requestHead) set(key, value []byte) {
	switch {
	case len(key) == len(namePath) && bytes.EqualFold(key, namePath):
		h.path = string(value)
	case len(key) == len(nameMethod) && bytes.EqualFold(key, nameMethod):
		h.other = len(value) > 0 && !bytes.Equal(value, methodPost)
	case len(key) == len(nameKind) && bytes.EqualFold(key, nameKind):
		h.grpc = bytes.HasPrefix(value, kindGRPC)
	}
}

// each calls f for the fields of a message, with their bytes or their number, until f returns false. It reports whether
// f has not, and the bytes are a message.
func each(b []byte, f func(number protowire.Number, kind protowire.Type, value []byte, n uint64) bool) bool {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		var value []byte
		var count uint64
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			count, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 || !f(number, kind, value, count) {
			return false
		}
		b = b[n:]
	}
	return true
}

// appendRouted appends a ProcessingResponse that tells the gateway where a request goes. The header and the metadata
// have equal values. The route stays that of the pool: without clearing it, the new path is not matched anew.
func appendRouted(b []byte, value, path string, remove []string) []byte {
	mutation := field(option(keyEndpoint, value))
	if path != "" {
		mutation += field(option(headerPath, path))
	}
	for _, name := range remove {
		mutation += field(len(name))
	}
	b = open(b, fieldResponse, field(field(mutation)))
	b = open(b, fieldResponse, field(mutation))
	b = open(b, fieldMutation, mutation)
	b = appendOption(b, keyEndpoint, value)
	if path != "" {
		b = appendOption(b, headerPath, path)
	}
	for _, name := range remove {
		b = text(b, fieldRemove, name)
	}
	inner := field(len(keyEndpoint)) + field(field(len(value)))   // an entry of the inner Struct
	outer := field(len(namespaceLB)) + field(field(field(inner))) // and of the outer one
	b = open(b, fieldMetadata, field(outer))
	b = open(b, fieldFields, outer)
	b = text(b, fieldKey, namespaceLB)
	b = open(b, fieldValue, field(field(inner)))
	b = open(b, fieldStruct, field(inner))
	b = open(b, fieldFields, inner)
	b = text(b, fieldKey, keyEndpoint)
	b = open(b, fieldValue, field(len(value)))
	return text(b, fieldText, value)
}

// headerPath is the header that has the path of a request.
const headerPath = ":path"

// field is the size of a field of n bytes, whose number is below 16.
func field(n int) int { return 1 + protowire.SizeBytes(n) }

// option is the size of a HeaderValueOption.
func option(key, value string) int { return field(field(len(key))+field(len(value))) + 2 }

func appendOption(b []byte, key, value string) []byte {
	b = open(b, fieldSet, option(key, value))
	b = open(b, fieldHeader, field(len(key))+field(len(value)))
	b = text(text(b, fieldKey, key), fieldRaw, value)
	b = protowire.AppendTag(b, fieldAction, protowire.VarintType)
	return protowire.AppendVarint(b, actionOverwriteOrAdd)
}

// open begins a field of n bytes.
func open(b []byte, number protowire.Number, n int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(n))
}

func text(b []byte, number protowire.Number, x string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), x)
}
