package fluid

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/policy/plan"
)

// Machines that are filled evenly hold no more than their memory, serve every stage that any filling serves, and leave
// no room for a variant that they may hold.
func TestSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	crowded := 0
	for k := range 60 {
		w := random(rng, 3, k%2 == 0)
		p := &Planner{Profile: w}
		m, err := p.read(&plan.Request{Spec: &w.Spec, Rates: w.rates})
		if err != nil {
			continue
		}
		s := m.newSearch(t.Context(), p)
		decided, even := m.newResidency(m.fresh(m.all()), &s.work), m.newResidency(m.fresh(m.all()), &s.work)
		decided.decide()
		even.spread()
		if slices.Contains(even.crowded, true) {
			crowded++
		}
		for i := range even.sites {
			if even.sites[i].free < 0 {
				t.Errorf("world %d: site %d holds %d bytes more than it has", k, i, -even.sites[i].free)
			}
			for j := range even.sites[i].holds {
				if even.option(i, j).rates != nil && even.allows(i, j) {
					t.Errorf("world %d: site %d has room for variant %d", k, i, even.option(i, j).variant)
				}
			}
		}
		for stage := range m.stages {
			if decided.copies[stage] > 0 && even.copies[stage] == 0 {
				t.Errorf("world %d: no machine serves stage %d", k, stage)
			}
		}
	}
	if crowded < 10 {
		t.Errorf("memory holds everything in all worlds but %d", crowded)
	}
}
