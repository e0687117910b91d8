// Package host is the application without a terminal. It opens a configuration, measures its models, plans, serves and
// simulates. The command line is one program around it; other programs embed it through package sluice at the root.
//
// A configuration goes through stages. Each stage is a type, so that a program that skips one does not compile:
//
//	Open      -> *Opened     a sluice.yaml, checked and resolved
//	Profile   -> *Profiled   with a latency profile of its variants
//	Plan      -> *Planned    with a planner and its first plan
//	NewServer -> *Server     bound to its addresses
//
// Methods of [Opened] measure models, or predict their latencies from their operators. A [Profiled] builds planners. A
// [Planned] is simulated or served. Values of the first three types do not change after they are made, and are safe for
// concurrent use.
//
// The package prints nothing. It reports progress and notices through the callbacks of [Options], and a server logs to
// the slog.Logger of its [ServerOptions]. Package fault gives the kind of an error.
package host
