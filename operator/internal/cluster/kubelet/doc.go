// Package kubelet runs the pods of a test's nodes as processes of this machine: each pod has a network namespace with
// an address of its own, its volumes are mounted, its init containers run first, its probes decide whether it is ready,
// and its end is graceful. An image is a folder of programs: a container runs the one that its command names.
//
// It needs root. It knows as much of pods as sluice's need: emptyDir, ConfigMap, Secret and projected token volumes,
// fields as environment, HTTP, gRPC and TCP probes, sleeping before the end.
package kubelet
