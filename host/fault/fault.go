// Package fault says of which kind an error is, so that a program knows whether its user has to mend a file, to install
// something or to ask otherwise. The kind changes nothing about an error's text.
package fault

import (
	"errors"
	"fmt"
)

// Kind says what there is to do about an error.
type Kind int

// The kinds. Failed is that of every error that was given no other.
const (
	Failed   Kind = iota // it was tried and did not work
	Usage                // the request is wrong: a name, a number, two things that exclude each other
	Config               // a file that a person wrote is wrong, or does not go with the others
	Missing              // something has to be installed or fetched first
	Short                // it ran, and fell short of a quality that was demanded
	NoServer             // a server did not answer
)

// classified is an error with its kind.
type classified struct {
	kind Kind
	err  error
}

func (c *classified) Error() string { return c.err.Error() }
func (c *classified) Unwrap() error { return c.err }

// Wrap gives an error a kind, in place of one that it may have. The error must not be nil.
func Wrap(k Kind, err error) error { return &classified{k, err} }

// Errorf makes an error of a kind as fmt.Errorf makes one: a %w may wrap another, whose kind then no longer counts.
func Errorf(k Kind, format string, args ...any) error {
	return &classified{k, fmt.Errorf(format, args...)}
}

// Of returns the kind of an error: the outermost that it was given, or Failed.
func Of(err error) Kind {
	var c *classified
	if errors.As(err, &c) {
		return c.kind
	}
	return Failed
}
