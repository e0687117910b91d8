package route_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/internal/ruletest"
	"github.com/sluice-serving/sluice/policy/route"
)

// Over many draws every instance gets its share, within four standard deviations. Without shares all get the same.
func TestRandomFollowsTheShares(t *testing.T) {
	const n = 20000
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		o := route.NewRandom(rng)
		shares := make([]float64, 2+rng.IntN(5))
		total := 0.0
		for i := range shares {
			if seed%3 != 0 {
				shares[i] = rng.Float64()
			}
			total += shares[i]
		}
		f := ruletest.Pool(shares, 8)
		ruletest.Arrive(f, 1, n)
		o.Route(ruletest.ViewOf(f))
		got := ruletest.Lengths(f)
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
