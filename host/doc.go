// Package host is the application without a terminal: it opens a configuration, learns how fast its models are, plans,
// serves and simulates. The command line is one program around it; any Go program can be another.
//
// What is known of a configuration is a type, so that steps cannot be taken in a wrong order:
//
//	Open     -> *Opened     a sluice.yaml, checked and resolved
//	Profile  -> *Profiled   with what is believed of its latencies
//	Plan     -> *Planned    with a planner and its first plan
//	NewServer -> *Server    bound to its addresses
//
// An [Opened] can be measured or have its operators predicted; a [Profiled] builds planners; a [Planned] serves, or is
// simulated. Values of these types are never changed, and any number of goroutines may use one.
//
// Nothing is printed. Sentences for a person and progress go to [Options], what a server has to say to its log.
// Package fault tells of which kind an error is.
package host
