// Package host is the application without a terminal. It opens a configuration, plans and simulates, and makes the
// backends of its workers. The packages below it are its rooms: measuring, server, questions, saved, planning and
// others. The command line is one program around them; other programs embed them through package sluice at the root.
//
// A configuration goes through stages. Each stage is a type, so that a program that skips one does not compile:
//
//	Open       -> *Opened         a sluice.yaml, checked and resolved
//	Profile    -> *Profiled       with a latency profile of its variants
//	Plan       -> *Planned        with a planner and its first plan
//	server.New -> *server.Server  bound to its addresses
//
// A [Profiled] builds planners. A [Planned] is simulated or served. Values of the first three types do not change after
// they are made, and are safe for concurrent use.
//
// The package prints nothing. It reports progress and notices through the callbacks of [Options]. Package fault gives
// the kind of an error.
package host
