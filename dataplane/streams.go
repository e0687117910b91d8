package dataplane

import "hash/fnv"

// StreamNumber returns the number by which the engine knows streams of a name (serving.Query.Stream); 0 for none. It is
// a hash: silent streams need no memory, and journals have the same number in every run. Two names of an app with the
// same number would share one order; their states are kept by name and stay apart.
func StreamNumber(name string) uint64 {
	if name == "" {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return max(h.Sum64(), 1)
}
