// Package systems names compositions of a planner, a router, a batcher and a scaler. It holds the one list of
// components, the one list of systems and the one table of options. No other package branches on their names.
package systems
