package dataplane

import "hash/fnv"

// StreamNumber is the number by which the engine knows the streams of a name (serving.Query.Stream); 0 for none. It is
// a hash, so that nothing has to be remembered of streams that are silent, and a journal has the same number in every
// run. Two names of an app that share a number would be kept in one order; what is remembered of them is kept by name,
// apart.
func StreamNumber(name string) uint64 {
	if name == "" {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return max(h.Sum64(), 1)
}
