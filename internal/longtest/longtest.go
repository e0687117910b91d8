// Package longtest chooses between the short form of a heavy test, which every run of the tests has, and its long form.
package longtest

import "os"

// variable is what `make long` sets.
const variable = "SLUICE_LONG"

// Of returns short, or long where the environment asks for the long forms of tests.
func Of[T any](short, long T) T {
	if os.Getenv(variable) != "" {
		return long
	}
	return short
}
