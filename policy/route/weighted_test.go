package route_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/internal/ruletest"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// After n queries an instance of share w has received n*w to within less than one, for random shares, however the
// queries are grouped. Over any window the deviation stays below two.
func TestWeightedDeviation(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		k := 1 + rng.IntN(50)
		shares := make([]float64, k)
		total := 0.0
		for i := range shares {
			shares[i] = rng.ExpFloat64()
			if rng.IntN(6) == 0 {
				shares[i] = 0
			}
			total += shares[i]
		}
		if total == 0 {
			continue
		}
		f := ruletest.Pool(shares, 8)
		o := route.NewWeighted()
		low, high := make([]float64, k), make([]float64, k) // of given - n*w, over all prefixes
		for n := 0; n < 3000; {
			group := 1 + rng.IntN(5)
			ruletest.Arrive(f, n+1, group)
			o.Route(ruletest.ViewOf(f))
			n += group
			for i, in := range f.Ready(0) {
				d := float64(in.Queue().Len()) - float64(n)*shares[i]/total
				if math.Abs(d) >= 1 {
					t.Fatalf("seed %d: after %d queries instance %d of share %.4f has %d, off by %.3f", seed, n, i,
						shares[i]/total, in.Queue().Len(), d)
				}
				low[i], high[i] = min(low[i], d), max(high[i], d)
			}
		}
		for i := range shares {
			if high[i]-low[i] >= 2 {
				t.Errorf("seed %d: over some window instance %d is off by %.3f", seed, i, high[i]-low[i])
			}
		}
		if f.Central(0).Len() > 0 {
			t.Errorf("seed %d: %d queries were left", seed, f.Central(0).Len())
		}
	}
}

// Queries with requirements go where they can be served, also to an instance without a share.
func TestWeightedRespectsRequirements(t *testing.T) {
	f := ruletest.Pool([]float64{1, 0}, 8)
	f.Spec().Variants = append(f.Spec().Variants, serving.Variant{Name: "better", Accuracy: 0.99, MaxBatch: 8})
	second := f.Ready(0)[1]
	f.RemoveVariant(second, 0)
	f.AddVariant(second, fleet.Loaded{Variant: 1, Limit: 8, Warm: true, Wanted: true})
	f.Refresh(second)
	r := f.Add(&fleet.Work{Query: 1, Items: 1, Pin: serving.None, MinAccuracy: 0.95, Deadline: 1e9})
	f.Wait(r)
	route.NewWeighted().Route(ruletest.ViewOf(f))
	if second.Queue().Len() != 1 {
		t.Errorf("the query that wants 0.95 did not go to the only instance that has it")
	}
}
