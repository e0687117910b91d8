// Package systems names compositions: which planner, router, batcher and scaler make up a system. It holds the one list
// of components, the one list of systems and the one table of options; no other package branches on a name of any of
// them.
package systems
