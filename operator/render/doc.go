// Package render makes a cell's configuration of a fleet's resources: a complete sluice.yaml, the latencies that it is
// planned with, and what machine supply needs. It is a function of its input.
package render
