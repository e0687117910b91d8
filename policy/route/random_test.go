package route

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Over many draws every instance gets its share, within four standard deviations. Without shares all get the same.
func TestRandomFollowsTheShares(t *testing.T) {
	const n = 20000
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		o := NewRandom(rng)
		shares := make([]float64, 2+rng.IntN(5))
		total := 0.0
		for i := range shares {
			if seed%3 != 0 {
				shares[i] = rng.Float64()
			}
			total += shares[i]
			o.draws = append(o.draws, i)
		}
		all := pool(shares, 8).Ready(0)
		got := make([]int, len(shares))
		for range n {
			got[o.draw(all, total)]++
		}
		for i := range shares {
			p := 1 / float64(len(shares))
			if total > 0 {
				p = shares[i] / total
			}
			if d := math.Abs(float64(got[i]) - n*p); d > 4*math.Sqrt(n*p*(1-p))+1 {
				t.Errorf("seed %d: instance %d of share %.3f got %d of %d", seed, i, p, got[i], n)
			}
		}
	}
}
