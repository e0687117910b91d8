package kairos

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// KAIROS+ serves with the pool of the highest bound, which carries 1.05 times what the one carries that Kairos chooses
// for mtwnd. At a load where no pool holds it tries others, and comes back to one that was tried.
func TestKairosPlusWhileItServes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	run := newRunner(reproduce.Request{Seeds: 1})
	s, err := run.deployment(paperSetup("mtwnd"))
	if err != nil {
		t.Fatal(err)
	}
	const rate = 860 // queries/s
	for seed := uint64(1); seed <= 2; seed++ {
		plain, err := s.serve(t.Context(), kairosRule, 3*time.Minute, rate, seed, false)
		if err != nil {
			t.Fatal(err)
		}
		plus, err := s.serve(t.Context(), exploringRule, 3*time.Minute, rate, seed, false)
		if err != nil {
			t.Fatal(err)
		}
		if plain.ending < 1 || plus.ending > 0.9 || plus.pools != 1 {
			t.Errorf("seed %d: kairos misses %.2f %%, kairos+ %.2f %% with %d pools", seed, plain.ending, plus.ending,
				plus.pools)
		}
		over, err := s.serve(t.Context(), exploringRule, 5*time.Minute, 1.2*rate, seed, false)
		if err != nil {
			t.Fatal(err)
		}
		if over.pools < 2 {
			t.Errorf("seed %d: under overload only %v is tried", seed, over.first)
		}
	}
}
