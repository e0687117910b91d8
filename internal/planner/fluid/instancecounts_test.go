package fluid

import (
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/policy/plan"
)

// An app that may have two instances has them where they serve most.
func TestMostInstancesGoWhereTheyServeMost(t *testing.T) {
	w := &world{}
	w.machines(4, 4, 0, 0)
	w.machines(4, 1, 0, 0)
	w.app(100*ms, 500).MaxInstances = 2
	w.variant(ms, ms, 1, mebi)
	w.app(100*ms, 10)
	w.variant(ms, ms, 1, mebi)
	n := make([]int, 2)
	for _, i := range w.plan(t, Planner{}, nil).Instances {
		if i.Stage == 0 {
			n[w.Workers[i.Worker].DeviceType]++
		}
	}
	if n[0] != 0 || n[1] != 2 {
		t.Errorf("%v instances on the slow and the quick machines, want 0 and 2", n)
	}
}

// A plan keeps the new limits when they change while it runs.
func TestLimitsOfInstancesChange(t *testing.T) {
	w := &world{}
	w.machines(6, 1, 0, 0)
	w.app(100*ms, 500)
	w.variant(ms, ms, 1, mebi)
	w.app(100*ms, 10)
	w.variant(ms, ms, 1, mebi)
	p := w.plan(t, Planner{}, nil)
	for _, most := range []int{5, 2, 0, 3, 1} {
		w.Apps[0].MaxInstances = most
		p = w.plan(t, Planner{}, inForce(w, p))
		n := 0
		for _, i := range p.Instances {
			if i.Stage == 0 {
				n++
			}
		}
		if most > 0 && n != most || most == 0 && n != 6 {
			t.Errorf("at most %d: %d instances", most, n)
		}
	}
}

// Random limits are kept in random worlds, owned and rented, wherever memory has room for them.
func TestRandomLimitsOfInstances(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 11))
		rented := seed%2 == 1
		w := random(rng, 3, rented)
		roomy := rng.IntN(2) == 0
		if roomy {
			for d := range w.DeviceTypes {
				w.DeviceTypes[d].MemoryBytes = 0
			}
		}
		for a := range w.Apps {
			if rng.IntN(2) == 0 {
				w.Apps[a].MinInstances = rng.IntN(len(w.Workers) + 1)
			}
			if rng.IntN(2) == 0 {
				w.Apps[a].MaxInstances = max(w.Apps[a].MinInstances, 1) + rng.IntN(3)
			}
		}
		var p *plan.Plan
		for range 3 {
			if p == nil {
				r := plan.Request{Spec: &w.Spec, Rates: w.rates}
				if _, err := (&Planner{Profile: w}).read(&r); err != nil {
					break // nothing of it can be served
				}
				p = w.plan(t, Planner{}, nil)
			} else {
				for a := range w.rates {
					w.rates[a] *= 0.3 + 2*rng.Float64()
				}
				p = w.plan(t, Planner{}, inForce(w, p))
			}
			for _, x := range p.OutOfBounds(&w.Spec) {
				if !x.Fewer || roomy {
					t.Errorf("seed %d: stage %d has %d instances, bound %d (the least: %t)", seed, x.Stage, x.Instances,
						x.Bound, x.Fewer)
				}
			}
		}
	}
}
