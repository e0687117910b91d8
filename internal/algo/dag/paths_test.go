package dag

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// In random graphs the longest paths are those found by walking every path.
func TestAroundAgainstEveryPath(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 8))
		n := 1 + rng.IntN(8)
		next, length := make([][]int, n), make([]time.Duration, n)
		for k := range n {
			length[k] = time.Duration(rng.IntN(20))
			for to := k + 1; to < n; to++ {
				if rng.IntN(3) == 0 {
					next[k] = append(next[k], to)
				}
			}
		}
		var ahead func(k int) time.Duration
		ahead = func(k int) (most time.Duration) {
			for _, to := range next[k] {
				most = max(most, length[to]+ahead(to))
			}
			return most
		}
		var back func(k int) time.Duration
		back = func(k int) (most time.Duration) {
			for from := range k {
				if slices.Contains(next[from], k) {
					most = max(most, length[from]+back(from))
				}
			}
			return most
		}
		before, behind := Around(next, length)
		for k := range n {
			if before[k] != back(k) || behind[k] != ahead(k) {
				t.Errorf("seed %d, task %d: %v before and %v behind, want %v and %v", seed, k, before[k], behind[k],
					back(k), ahead(k))
			}
		}
	}
}
