package picker

import (
	"encoding/binary"
	"errors"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// The calls of the Open Inference Protocol that are about one app and can be sent to a worker.
const (
	pathModels = "/v2/models/"
	pathInfer  = "/infer"
	callInfer  = "/inference.GRPCInferenceService/ModelInfer"
)

// appOfPath returns the app that an HTTP request asks an answer of; false for all other requests. Versions are the
// dispatchers': a worker has variants.
func appOfPath(path string) (string, bool) {
	path, _, _ = strings.Cut(path, "?")
	app, ok := strings.CutPrefix(path, pathModels)
	if !ok {
		return "", false
	}
	app, ok = strings.CutSuffix(app, pathInfer)
	return app, ok && app != "" && !strings.ContainsAny(app, "/%")
}

// withModel returns the path of the same request for a model.
func withModel(path, model string) string {
	_, query, ok := strings.Cut(path, "?")
	out := pathModels + model + pathInfer
	if ok {
		out += "?" + query
	}
	return out
}

// A message of gRPC begins with a byte that says whether it is compressed, and four with its length.
const grpcPrefix = 5

// maxHead bounds how much of a message is kept until its model's name has come. Clients write it first.
const maxHead = 64 << 10

// fieldModel is the number of ModelInferRequest.model_name.
const fieldModel protowire.Number = 1

// tagVersion is the first byte of ModelInferRequest.model_version, field 2.
const tagVersion = 2<<3 | byte(protowire.BytesType)

// head is what is known of the beginning of a gRPC request.
type head struct {
	data []byte
	// from and to are where the field of the model's name begins and ends, with its tag and length.
	from, to int
	model    string
}

// reading says how far the beginning of a message was understood.
type reading int

const (
	more    reading = iota // the name may still come
	found                  // here it is
	unknown                // it does not come, or cannot be read: leave the message alone
)

// read looks for the model's name.
func (h *head) read(ended bool) reading {
	short := more
	if ended || len(h.data) > maxHead {
		short = unknown
	}
	if len(h.data) < grpcPrefix {
		return short
	}
	if h.data[0] != 0 {
		return unknown // compressed
	}
	length := int(binary.BigEndian.Uint32(h.data[1:grpcPrefix]))
	b := h.data[grpcPrefix:]
	if len(b) > length {
		b = b[:length]
	}
	for at := 0; at < len(b); {
		number, kind, n := protowire.ConsumeTag(b[at:])
		if n < 0 {
			return tooShort(n, short)
		}
		m := protowire.ConsumeFieldValue(number, kind, b[at+n:])
		if m < 0 {
			return tooShort(m, short)
		}
		if number == fieldModel && kind == protowire.BytesType {
			text, _ := protowire.ConsumeBytes(b[at+n:])
			h.from, h.to, h.model = grpcPrefix+at, grpcPrefix+at+n+m, string(text)
			// The version comes right behind it. One that is asked for is the dispatchers' to find.
			switch rest := b[at+n+m:]; {
			case len(rest) > 0 && rest[0] == tagVersion:
				return unknown
			case len(rest) == 0 && len(b) < length:
				return short
			}
			return found
		}
		at += n + m
	}
	if len(b) == length {
		return unknown
	}
	return short
}

// tooShort returns short for an error that more bytes would mend.
func tooShort(n int, short reading) reading {
	if errors.Is(protowire.ParseError(n), errTruncated) {
		return short
	}
	return unknown
}

var errTruncated = protowire.ParseError(protowire.ConsumeFieldValue(1, protowire.BytesType, nil))

// renamed returns the bytes with another model's name, and the length of the message mended.
func (h *head) renamed(model string) []byte {
	field := protowire.AppendString(protowire.AppendTag(nil, fieldModel, protowire.BytesType), model)
	out := make([]byte, 0, len(h.data)+len(field))
	out = append(append(append(out, h.data[:h.from]...), field...), h.data[h.to:]...)
	length := int(binary.BigEndian.Uint32(h.data[1:grpcPrefix])) + len(field) - (h.to - h.from)
	binary.BigEndian.PutUint32(out[1:], uint32(length))
	return out
}
