package oip

import (
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
)

// Code classifies an error for both protocols.
type Code uint8

// The classes of error.
const (
	Invalid         Code = iota // the request is wrong
	NotFound                    // the model or version does not exist
	Unavailable                 // a later attempt may succeed
	Unsupported                 // the server does not implement this
	TooLarge                    // larger than the server accepts
	Late                        // the deadline has passed, or could not be met
	Gone                        // the client went away
	Internal                    // the server or the model failed
	BadAnswer                   // the server that has the model gave an answer that does not fit it
	Unauthenticated             // the caller has not shown who it is
	Forbidden                   // the caller may not do this
	Limited                     // the caller sends more than it may
)

var codeTable = [...]struct {
	http int
	grpc codes.Code
}{
	Invalid:     {http.StatusBadRequest, codes.InvalidArgument},
	NotFound:    {http.StatusNotFound, codes.NotFound},
	Unavailable: {http.StatusServiceUnavailable, codes.Unavailable},
	Unsupported: {http.StatusNotImplemented, codes.Unimplemented},
	TooLarge:    {http.StatusRequestEntityTooLarge, codes.ResourceExhausted},
	Late:        {http.StatusGatewayTimeout, codes.DeadlineExceeded},
	Gone:        {http.StatusBadRequest, codes.Canceled},
	Internal:    {http.StatusInternalServerError, codes.Internal},

	BadAnswer:       {http.StatusBadGateway, codes.Internal},
	Unauthenticated: {http.StatusUnauthorized, codes.Unauthenticated},
	Forbidden:       {http.StatusForbidden, codes.PermissionDenied},
	Limited:         {http.StatusTooManyRequests, codes.ResourceExhausted},
}

// HTTP returns the status of the class over HTTP.
func (c Code) HTTP() int { return codeTable[c].http }

// GRPC returns the status of the class over gRPC.
func (c Code) GRPC() codes.Code { return codeTable[c].grpc }

// Error is the error for a client. Field names the part of the request that is wrong, in the protocol's own words, such
// as inputs[0].shape; it may be empty.
type Error struct {
	Code  Code
	Field string
	Text  string
}

// maxText bounds the text of an error, in bytes: it may repeat what a client sent, and over gRPC it is a header.
const maxText = 2048

// Error implements error.
func (e *Error) Error() string {
	text := e.Text
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + " ..."
	}
	return text
}

// Errorf returns an Error.
func Errorf(c Code, field, format string, args ...any) *Error {
	return &Error{c, field, fmt.Sprintf(format, args...)}
}

// ErrNoInputs is the error of a request that has no input. Only models that take none can answer it.
var ErrNoInputs = invalid("inputs", "is empty, want at least one")

func invalid(field, format string, args ...any) *Error {
	return Errorf(Invalid, field, format, args...)
}
