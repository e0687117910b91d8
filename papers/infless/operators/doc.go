// Package operators predicts how long a model takes without running it. It measures the operators of the model's graph
// one by one, stores their times, and combines them (INFless §3.3, combined operator profiling).
//
// The graph is the one that the runtime executes, which the package asks it for. It has fused operators, folded
// constants and blocked layouts, so that sums over the graph in the file would be wrong. An operator is measured in a
// model of copies of it, each with weights of its own. So caches matter as they do within a whole model. The cost of a
// call is measured on a model without operators and added once.
package operators
