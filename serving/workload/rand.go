package workload

import "math/rand/v2"

// Rand returns the random numbers of one purpose of a run. The same seed and purpose give the same numbers on every
// machine. Those of different purposes are independent.
func Rand(seed uint64, purpose string) *rand.Rand {
	// FNV-1a with 64 bits turns the purpose into the second word of the seed of PCG.
	h := uint64(14695981039346656037)
	for i := 0; i < len(purpose); i++ {
		h ^= uint64(purpose[i])
		h *= 1099511628211
	}
	return rand.New(rand.NewPCG(seed, h))
}
