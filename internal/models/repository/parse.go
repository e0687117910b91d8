package repository

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/sluice-serving/sluice/internal/models/repository/pb"
)

// withoutMark is a text without the byte order mark that some editors put before it.
func withoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }

// Parse reads the text of a config.pbtxt. unknown lists the fields that sluice does not read, each with its line; they
// are no error, since most such files are written for another server.
func Parse(text []byte) (config *pb.ModelConfig, unknown []string, err error) {
	if len(text) > MaxConfigBytes {
		return nil, nil, fmt.Errorf("%d bytes long, more than the limit of %d", len(text), MaxConfigBytes)
	}
	if !utf8.Valid(text) {
		return nil, nil, fmt.Errorf("not valid UTF-8: save the file as UTF-8 text")
	}
	text = withoutMark(text)
	config = &pb.ModelConfig{}
	unknown, err = unknownFields(string(text), config.ProtoReflect().Descriptor())
	if err != nil {
		return nil, nil, err
	}
	opts := prototext.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxNesting}
	if err := opts.Unmarshal(text, config); err != nil {
		return nil, nil, fmt.Errorf("%s", cleanMessage(err))
	}
	return config, unknown, nil
}

// cleanMessage removes the library's prefix and its deliberately unstable spaces from a message.
func cleanMessage(err error) string {
	s := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	return strings.TrimSpace(strings.TrimPrefix(s, "proto:"))
}
