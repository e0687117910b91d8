// Package report defines every number that the project reports, once. A simulated run, a live server and a load
// generator feed Outcomes to the same Recorder, so their numbers mean the same. docs/metrics.md has the definitions and
// their formulas.
//
// The package is pure: it writes only to the io.Writer that it is given. The same outcomes in the same order give the
// same bytes.
package report
