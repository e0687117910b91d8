package dataplane

import "strconv"

// named is set in the numbers of streams that have a name: few clients count that far.
const named = 1 << 63

// streamNumber is what the engine calls a stream: the number that its name is in decimal, or else a hash of the name (FNV-1a, 64 bits).
// It depends on nothing but the name, so that nothing has to be remembered and a stream keeps its number through restarts. Two names
// of one number, which chance does not bring about, only share their turns at stateful stages: states go by the names themselves.
func streamNumber(name string) uint64 {
	if name == "" {
		return 0
	}
	if n, err := strconv.ParseUint(name, 10, 64); err == nil && n > 0 && strconv.FormatUint(n, 10) == name {
		return n
	}
	h := uint64(14695981039346656037)
	for k := range len(name) {
		h = (h ^ uint64(name[k])) * 1099511628211
	}
	return h | named
}
