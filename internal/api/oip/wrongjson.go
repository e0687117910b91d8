package oip

import (
	"encoding/json"
	"errors"
)

// wrongJSON says what is wrong with a request's JSON, in the protocol's words: names of Go types stay inside.
func wrongJSON(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		field := kind.Field
		if field == "" {
			field = "the request"
		}
		return invalid("", "%s must not be a JSON %s", field, kind.Value)
	}
	return invalid("", "the request is no JSON: %v", err)
}
