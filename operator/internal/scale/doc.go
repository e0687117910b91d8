// Package scale measures sluice on a cluster of many simulated nodes: how long it takes until everything runs, what the
// operator and the API server need, and how many calls a plan costs. It has tests alone; `make kube-scale` runs their
// long form and prints the table.
//
// API server, scheduler, controllers, operator and dispatchers are real. Nodes are kwok's, and one process of this test
// answers at the addresses of all workers: it takes the time that the profile says and computes nothing.
package scale
