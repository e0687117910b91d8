package packing

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/internal/packingtest"
	"github.com/sluice-serving/sluice/policy/plan"
)

// The weights are those of a fine grid, and their bound is valid: no weights give a lower one, and no plan carries
// more.
func TestBalance(t *testing.T) {
	for seed := uint64(1); seed <= 200; seed++ {
		rng := rand.New(rand.NewPCG(seed, 3))
		spec, believed, rates := packingtest.Random(rng)
		p := &Planner{Profile: believed}
		x, err := p.Read(plan.Request{Spec: spec, Rates: rates})
		if err != nil {
			continue
		}
		var all []*Function
		threads, percent := 0, 0
		for _, w := range spec.Workers {
			d := &spec.DeviceTypes[w.DeviceType]
			threads, percent = threads+d.Cores, percent+100*d.Accelerators
		}
		for k := range x.Functions {
			x.Functions[k].undominated = undominated(x.Functions[k].Configurations)
			all = append(all, &x.Functions[k])
		}
		_, bound := dualWeights(x.Cluster, all)
		least := math.Inf(1)
		for n := range 2001 {
			part := float64(n) / 2000
			if percent == 0 {
				part = 1
			}
			w := weights{part / float64(threads), (1 - part) / max(float64(percent), 1)}
			takes := 0.0
			for _, f := range all {
				cheapest := math.Inf(1)
				for k := range f.Configurations {
					cheapest = min(cheapest, w.of(&f.Configurations[k])/f.Configurations[k].Up)
				}
				if len(f.Configurations) > 0 {
					takes += f.Load * cheapest
				}
			}
			least = min(least, 1/takes)
		}
		if bound > least*1.002 || bound < least*0.998 {
			t.Fatalf("seed %d: bound %v, on a grid %v", seed, bound, least)
		}
		out, err := p.Plan(context.Background(), plan.Request{Spec: spec, Rates: rates})
		if err != nil {
			t.Fatal(err)
		}
		if out.Shed == nil && bound < 1-1e-3 {
			t.Fatalf("seed %d: everything is served, and the bound is %v of it", seed, bound)
		}
	}
}
