// Package node is the worker of a fleet: it runs the models of a repository behind the Open Inference Protocol, loads
// and unloads them as it is asked, and decides nothing. It does not batch, queue or drop: the dispatcher does.
package node
