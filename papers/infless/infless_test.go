package infless

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/sluice-serving/sluice/internal/packingtest"
	"github.com/sluice-serving/sluice/internal/planner/packing"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// naive is Algorithm 1 as printed: it tries every configuration on every server for every instance.
func naive(x *packing.State, f *packing.Function, load float64) (out []packing.Placed) {
	for load > packing.Tolerance*f.Load {
		var at int32
		best, most := -1, 0.0
		for k := range f.Configurations {
			cfg := &f.Configurations[k]
			if best >= 0 && cfg.Batch < f.Configurations[best].Batch || cfg.Batch > 1 && load <= cfg.Low {
				continue
			}
			var on *packing.Group
			where := int32(0)
			for s := range x.Cluster.Servers {
				g := x.Cluster.Servers[s].Group
				if g.Fits(cfg) && (on == nil || g.Compare(on) < 0) {
					on, where = g, g.Servers[len(g.Servers)-1]
				}
			}
			// Of one configuration's servers Eq. 10 is highest where least is left; that none is better is checked
			// here.
			for s := range x.Cluster.Servers {
				if g := x.Cluster.Servers[s].Group; g.Fits(cfg) && efficiency(f, cfg, g) > efficiency(f, cfg, on) {
					panic("a server with more left is better")
				}
			}
			if on == nil {
				continue
			}
			e := efficiency(f, cfg, on)
			if best < 0 || e > most || e == most && cfg.Up > f.Configurations[best].Up {
				best, most, at = k, e, where
			}
		}
		if best < 0 {
			break
		}
		cfg := &f.Configurations[best]
		on, _ := x.Cluster.Allocate(at, cfg, -1)
		out = append(out, packing.Placed{Configuration: cfg, Server: at, Accelerator: on})
		load -= cfg.Up
	}
	return out
}

func efficiency(f *packing.Function, cfg *packing.Configuration, g *packing.Group) float64 {
	return cfg.Up / cfg.Resources / f.MaxEfficiency / max(1-cfg.Resources/g.Left, minFragment)
}

func TestScheduleAgainstEveryServer(t *testing.T) {
	for seed := uint64(1); seed <= 300; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		spec, believed, rates := packingtest.Random(rng)
		p := New(believed, Options{Options: packing.Options{Exact: rng.IntN(2) == 0}})
		a, err := p.Read(plan.Request{Spec: spec, Rates: rates})
		if err != nil {
			continue
		}
		b, _ := p.Read(plan.Request{Spec: spec, Rates: rates})
		for k := range a.Functions {
			got, want := algorithm1{}.Schedule(a, &a.Functions[k], nil, a.Functions[k].Load),
				naive(b, &b.Functions[k], b.Functions[k].Load)
			if len(got) != len(want) {
				t.Fatalf("seed %d: %d instances, want %d", seed, len(got), len(want))
			}
			for n := range got {
				if *got[n].Configuration != *want[n].Configuration || got[n].Server != want[n].Server ||
					got[n].Accelerator != want[n].Accelerator {
					t.Fatalf("seed %d, instance %d: %+v on %d, want %+v on %d", seed, n, *got[n].Configuration,
						got[n].Server, *want[n].Configuration, want[n].Server)
				}
			}
		}
	}
}

// At random rates, with every set of options, plans are legal, forecast what their instances carry, keep what runs
// while loads grow, and the same request gives the same plan.
func TestPlansThroughRandomRates(t *testing.T) {
	sets := []Options{
		{}, {Options: packing.Options{Exact: true}}, {Options: packing.Options{Single: true}}, {Fastest: true},
		{Uniform: true}, {Uniform: true, First: true},
		{Options: packing.Options{Single: true, Threads: 2, Percent: 10}},
		{Options: packing.Options{Headroom: 1.1}, Balanced: true},
		{Options: packing.Options{Exact: true}, Balanced: true}, {Options: packing.Options{Dense: true}},
		{Undivided: true}, {Options: packing.Options{Latency: 1.5}},
		{Options: packing.Options{Merge: -1}},
	}
	plans := 0
	for seed := uint64(1); seed <= 200; seed++ {
		rng := rand.New(rand.NewPCG(seed, 2))
		spec, believed, rates := packingtest.Random(rng)
		p := New(believed, sets[seed%uint64(len(sets))])
		var snapshot *fleet.Snapshot
		var running []plan.Instance
		carried := make([]float64, len(rates))
		for step := range 12 {
			for a := range rates {
				switch rng.IntN(4) {
				case 0:
					rates[a] *= 3 * rng.Float64()
				case 1:
					rates[a] = 0
				case 2:
					rates[a] = 500 * rng.Float64()
				}
			}
			r := plan.Request{Spec: spec, Rates: rates, Snapshot: snapshot}
			out, err := p.Plan(context.Background(), r)
			if err != nil {
				continue // nothing serves these functions
			}
			plans++
			if err := out.Validate(spec); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			again, _ := p.Plan(context.Background(), r)
			if !reflect.DeepEqual(out, again) {
				t.Fatalf("seed %d, step %d: another plan for the same request", seed, step)
			}
			up, shares := make([]float64, len(rates)), make([]float64, len(rates))
			has := make(map[fleet.Key]bool)
			for _, i := range out.Instances {
				a := spec.Stages[i.Stage].App
				up[a] += i.Up
				shares[a] += i.Share
				if rates[a] == 0 {
					t.Fatalf("seed %d, step %d: an instance for nobody", seed, step)
				}
				k := fleet.Key{Worker: i.Worker, Ordinal: i.Place}
				if has[k] || i.Share < 0 {
					t.Fatalf("seed %d, step %d: %+v twice, or share %v", seed, step, k, i.Share)
				}
				has[k] = true
			}
			for a := range rates {
				shed := 0.0
				if out.Shed != nil {
					shed = out.Shed[a]
				}
				if math.Abs(up[a]-out.Capacity[a]) > 1e-6 ||
					up[a]+shed*max(p.Options.Headroom, 1) < out.Demand[a]*(1-1e-6) {
					t.Fatalf("seed %d, step %d: app %d gets %v, promised %v, of %v; shed %v", seed, step, a, up[a],
						out.Capacity[a], out.Demand[a], shed)
				}
				if up[a] > 0 && math.Abs(shares[a]-1) > 1e-9 {
					t.Fatalf("seed %d, step %d: shares of app %d add up to %v", seed, step, a, shares[a])
				}
			}
			if p.Options.Merge < 0 {
				for _, i := range running {
					if a := spec.Stages[i.Stage].App; rates[a] >= carried[a] &&
						!has[fleet.Key{Worker: i.Worker, Ordinal: i.Place}] {
						t.Fatalf("seed %d, step %d: what runs carries %v of app %d, %v come, and an instance went",
							seed, step, carried[a], a, rates[a])
					}
				}
			}
			running, carried = out.Instances, up
			snapshot = packingtest.After(spec, out)
		}
	}
	if plans < 1000 {
		t.Errorf("only %d plans", plans)
	}
}
