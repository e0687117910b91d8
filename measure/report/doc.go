// Package report defines every number the project reports, once. A simulated run, a live server and a load generator
// feed the same Recorder with Outcomes and so mean the same thing by the same word. The definitions with their formulas
// are in docs/metrics.md.
//
// The package is pure: it writes only to the io.Writer it is given, and the same outcomes in the same order give the
// same bytes.
package report
