package dataplane

import "hash/fnv"

// StreamNumber returns the number by which the engine knows a stream (serving.Query.Stream); 0 for the name "". It is a
// hash of the name, so that idle streams take no memory and every run has the same numbers in its journal. If two names
// of an app had the same number, their queries would be kept in one order; their states are kept by name, and so apart.
func StreamNumber(name string) uint64 {
	if name == "" {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return max(h.Sum64(), 1)
}
