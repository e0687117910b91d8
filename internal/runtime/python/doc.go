// Package python is the dataplane.Backend that runs models written in Python, each in processes of its own.
//
// A process runs the package sluice_worker of the folder python, which the program carries with it. It is asked over an
// inherited socket with the protocol's JSON; tensors lie in an anonymous file that both have mapped. So the inputs of a
// batch are copied once, which is what joining queries costs anyway, and outputs once by the worker and once out of the
// shared memory. gRPC, which the package speaks when it runs alone, costs more than the rest together
// (BenchmarkOverhead).
//
// A process that ends, hangs or grows beyond its limit breaks the batch that it runs, whose queries the engine then
// runs one by one, and another takes its place. An instance counts as lost once none of its processes can answer soon.
package python
