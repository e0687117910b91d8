// Package runner runs sluice's host for the cells that a dispatcher serves: one run for each cell and configuration.
//
// When a cell's configuration changes, a run of the new one starts beside the old one. Once it is ready queries go to
// it, and the old one ends when it has answered what it has.
package runner
