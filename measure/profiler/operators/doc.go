// Package operators predicts how long a model takes without running it: the operators of its graph are measured alone,
// each once, kept, and their times combined (INFless, §3.3, combined operator profiling).
//
// The graph is the one that the runtime runs, which it is asked for: fused operators, folded constants and channels
// laid out in blocks are operators like others there, and naive sums over the graph of the file would be wrong. An
// operator runs alone as a model of nothing but copies of it, each with weights of its own, so that what a call costs
// and what a cache holds count as they do in a model. What a call costs is measured on a model of no operators and
// added once.
package operators
