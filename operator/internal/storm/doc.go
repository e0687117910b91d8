// Package storm runs the operator and dispatchers of a fleet on a virtual clock, against an API server, nodes and a
// network in memory that fail as a seed says. There is nothing here but tests.
package storm
