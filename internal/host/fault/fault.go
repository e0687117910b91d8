// Package fault gives errors a kind, so that a program knows whether its user has to correct a file, install something
// or change the request. The kind does not change an error's text.
package fault

import (
	"errors"
	"fmt"
)

// Kind is a class of errors by what the user has to do.
type Kind int

// The kinds. Errors without one are Failed.
const (
	Failed   Kind = iota // the operation failed
	Usage                // the request is wrong: a name, a number, two things that exclude each other
	Config               // a file that a person wrote is wrong, or does not fit the others
	Missing              // something has to be installed or fetched first
	Short                // it ran, but a required quality was not reached
	NoServer             // a server did not answer
)

// classified is an error with its kind.
type classified struct {
	kind Kind
	err  error
}

func (c *classified) Error() string { return c.err.Error() }
func (c *classified) Unwrap() error { return c.err }

// Wrap gives an error a kind, which replaces an earlier one. The error must not be nil.
func Wrap(k Kind, err error) error { return &classified{k, err} }

// Errorf makes an error of a kind, with the format of fmt.Errorf. The kind of an error wrapped by %w does not count.
func Errorf(k Kind, format string, args ...any) error {
	return &classified{k, fmt.Errorf(format, args...)}
}

// Of returns the kind of an error: the outermost one, or Failed if it has none.
func Of(err error) Kind {
	var c *classified
	if errors.As(err, &c) {
		return c.kind
	}
	return Failed
}
