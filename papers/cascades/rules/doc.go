// Package rules has routers for cascades: a small variant answers first, and a larger one the queries that the small
// one is not sure of (serving.Confidence). All take the cascade for granted while they form batches, and change it, if
// at all, from second to second: CascadeServe (arXiv 2406.14424), DiffServe (arXiv 2411.15381) and the fixed cascade
// that both are compared with.
package rules
