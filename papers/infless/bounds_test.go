package infless

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/internal/packingtest"
	"github.com/sluice-serving/sluice/internal/planner/packing"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// At varying rates no function ever has more instances than its limit, and none fewer than its least number while
// anything that could serve it has room, including functions without demand. Functions without limits are planned as
// before.
func TestBoundsHold(t *testing.T) {
	rules := []Options{
		{}, {Options: packing.Options{Exact: true}, Balanced: true},
		{Options: packing.Options{Dense: true, Exact: true}}, {Undivided: true}, {Fastest: true},
		{Options: packing.Options{Merge: -1}, Uniform: true, First: true}, {Options: packing.Options{Single: true}},
	}
	short, most, least := 0, 0, 0
	for seed := uint64(1); seed <= 400; seed++ {
		rng := rand.New(rand.NewPCG(seed, 31))
		spec, p, rates := packingtest.Random(rng)
		for a := range spec.Apps {
			spec.Apps[a].MinInstances = rng.IntN(4)
			if rng.IntN(2) == 0 {
				spec.Apps[a].MaxInstances = max(spec.Apps[a].MinInstances, 1+rng.IntN(4))
			}
		}
		planner := New(p, rules[seed%uint64(len(rules))])
		var snapshot *fleet.Snapshot
		for step := range 6 {
			got, err := planner.Plan(context.Background(), plan.Request{Spec: spec, Snapshot: snapshot, Rates: rates})
			if err != nil {
				break // nothing can serve any of them
			}
			if err := got.Validate(spec); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			count := make([]int, len(spec.Apps))
			for _, i := range got.Instances {
				count[spec.Stages[i.Stage].App]++
			}
			snapshot = packingtest.After(spec, got)
			x, err := planner.Read(plan.Request{Spec: spec, Snapshot: snapshot, Rates: rates})
			if err != nil {
				t.Fatal(err)
			}
			for a, n := range count {
				app, f := &spec.Apps[a], &x.Functions[a]
				if app.MaxInstances > 0 && n > app.MaxInstances {
					t.Fatalf("seed %d, step %d, app %d: %d instances, at most %d are wanted", seed, step, a, n,
						app.MaxInstances)
				}
				if app.MaxInstances > 0 && n == app.MaxInstances {
					most++
				}
				if n >= app.MinInstances {
					if n == app.MinInstances && n > 0 {
						least++
					}
					continue
				}
				short++
				for k := range f.Configurations {
					if c := &f.Configurations[k]; c.Batch == 1 && fullest(x, c) != nil {
						t.Fatalf("seed %d, step %d, app %d: %d instances, at least %d are wanted, and one of device "+
							"type %d has room", seed, step, a, n, app.MinInstances, c.Device)
					}
				}
			}
			for a := range rates {
				rates[a] = []float64{0, 1, 700 * rng.Float64()}[rng.IntN(3)]
			}
			if rng.IntN(3) == 0 { // as with another version of a function
				a := rng.IntN(len(spec.Apps))
				spec.Apps[a].MaxInstances = spec.Apps[a].MinInstances + rng.IntN(2)
			}
		}
	}
	t.Logf("%d times at the most, %d at the least, %d without room for it", most, least, short)
	if most < 100 || least < 100 {
		t.Error("the bounds were hardly ever met")
	}
}

// A single function that may have n instances is carried if n of its largest carry it.
func TestBoundsCarry(t *testing.T) {
	tight, missed := 0, 0
	for seed := uint64(1); seed <= 400; seed++ {
		rng := rand.New(rand.NewPCG(seed, 32))
		spec, p, rates := packingtest.Random(rng)
		spec, rates = &serving.Spec{
			DeviceTypes: spec.DeviceTypes, Workers: spec.Workers, Apps: spec.Apps[:1], Stages: spec.Stages[:1],
			Variants: spec.Variants[:1],
		}, rates[:1]
		free, err := New(p, Options{}).Plan(context.Background(), plan.Request{Spec: spec, Rates: rates})
		if err != nil {
			continue
		}
		spec.Apps[0].MaxInstances = 1 + rng.IntN(max(len(free.Instances), 1))
		planner := New(p, Options{Balanced: seed%2 == 0})
		x, err := planner.Read(plan.Request{Spec: spec, Rates: rates})
		if err != nil {
			t.Fatal(err)
		}
		f, carries := &x.Functions[0], 0.0
		for range spec.Apps[0].MaxInstances {
			var best *packing.Configuration
			for k := range f.Configurations {
				if c := &f.Configurations[k]; fullest(x, c) != nil && f.Fills(c, rates[0]-carries) &&
					(best == nil || c.Up > best.Up) {
					best = c
				}
			}
			if best == nil {
				break
			}
			g := fullest(x, best)
			x.Cluster.Allocate(g.Servers[len(g.Servers)-1], best, -1)
			carries += best.Up
		}
		got, err := planner.Plan(context.Background(), plan.Request{Spec: spec, Rates: rates})
		if err != nil {
			t.Fatal(err)
		}
		if carries < rates[0] {
			continue
		}
		if len(free.Instances) > spec.Apps[0].MaxInstances {
			tight++
		}
		if got.Capacity[0] < rates[0]*(1-1e-6) {
			missed++
			t.Logf("seed %d: %v of %v queries/s with %d instances", seed, got.Capacity[0], rates[0],
				spec.Apps[0].MaxInstances)
		}
	}
	if tight < 30 || missed > 0 {
		t.Errorf("%d of %d tight bounds were not met", missed, tight)
	}
}

// fullest returns the fullest group with room for an instance, or nil.
func fullest(x *packing.State, c *packing.Configuration) *packing.Group {
	for _, g := range x.Cluster.Groups {
		if g.Fits(c) {
			return g
		}
	}
	return nil
}
