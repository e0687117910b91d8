package infless

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
)

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		name      string
		batch     int
		t, within time.Duration
		exact     bool
		low, up   float64
		ok        bool
	}{
		{"§3.2: objective 200 ms, 50 ms, batches of 4", 4, 50 * ms, 200 * ms, false, 28, 80, true},
		{"the same, exact", 4, 50 * ms, 200 * ms, true, 4 / 0.15, 80, true},
		{"rounded before it is multiplied", 8, 300 * ms, 700 * ms, false, 24, 24, true},
		{"the same, exact", 8, 300 * ms, 700 * ms, true, 20, 8 / 0.3, true},
		{"more than half the objective", 2, 101 * ms, 200 * ms, false, 0, 0, false},
		{"a batch of one may take all of it", 1, 200 * ms, 200 * ms, false, 1, 5, true},
		{"rounding would put the lower bound above the upper", 2, 150 * ms, 300 * ms, false, 12, 12, true},
		{"longer than a second", 4, 1100 * ms, 3 * time.Second, false, 0, 0, false},
		{"the same, exact", 4, 1100 * ms, 3 * time.Second, true, 4 / 1.9, 4 / 1.1, true},
		{"a batch of one is never waited for", 1, 100 * ms, 200 * ms, true, 0, 10, true},
	} {
		low, up, ok := Bounds(c.batch, c.t, c.within, c.exact)
		if ok != c.ok || ok && (math.Abs(low-c.low) > 1e-9 || math.Abs(up-c.up) > 1e-9) {
			t.Errorf("%s: [%v, %v] %v, want [%v, %v] %v", c.name, low, up, ok, c.low, c.up, c.ok)
		}
	}
}

// naive is Algorithm 1 as printed: it tries every configuration on every server for every instance.
func naive(x *state, f *function, load float64) (out []placed) {
	for load > tolerance*f.load {
		var at int32
		best, most := -1, 0.0
		for k := range f.configurations {
			cfg := &f.configurations[k]
			if best >= 0 && cfg.Batch < f.configurations[best].Batch || cfg.Batch > 1 && load <= cfg.Low {
				continue
			}
			var on *group
			where := int32(0)
			for s := range x.cluster.servers {
				g := x.cluster.servers[s].group
				if g.fits(cfg) && (on == nil || compare(g, on) < 0) {
					on, where = g, g.servers[len(g.servers)-1]
				}
			}
			// Of one configuration's servers Eq. 10 is highest where least is left; that none is better is checked
			// here.
			for s := range x.cluster.servers {
				if g := x.cluster.servers[s].group; g.fits(cfg) && efficiency(f, cfg, g) > efficiency(f, cfg, on) {
					panic("a server with more left is better")
				}
			}
			if on == nil {
				continue
			}
			e := efficiency(f, cfg, on)
			if best < 0 || e > most || e == most && cfg.Up > f.configurations[best].Up {
				best, most, at = k, e, where
			}
		}
		if best < 0 {
			break
		}
		cfg := &f.configurations[best]
		on, _ := x.cluster.allocate(at, cfg, -1)
		out = append(out, placed{Configuration: cfg, server: at, accelerator: on})
		load -= cfg.Up
	}
	return out
}

func efficiency(f *function, cfg *Configuration, g *group) float64 {
	return cfg.Up / cfg.Resources / f.maxEfficiency / max(1-cfg.Resources/g.left, minFragment)
}

func TestScheduleAgainstEveryServer(t *testing.T) {
	for seed := uint64(1); seed <= 300; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		spec, believed, rates := random(rng)
		p := &Planner{Profile: believed, Options: Options{Exact: rng.IntN(2) == 0}}
		a, err := p.read(plan.Request{Spec: spec, Rates: rates})
		if err != nil {
			continue
		}
		b, _ := p.read(plan.Request{Spec: spec, Rates: rates})
		for k := range a.functions {
			got, want := a.schedule(&a.functions[k], nil, a.functions[k].load),
				naive(b, &b.functions[k], b.functions[k].load)
			if len(got) != len(want) {
				t.Fatalf("seed %d: %d instances, want %d", seed, len(got), len(want))
			}
			for n := range got {
				if *got[n].Configuration != *want[n].Configuration || got[n].server != want[n].server ||
					got[n].accelerator != want[n].accelerator {
					t.Fatalf("seed %d, instance %d: %+v on %d, want %+v on %d", seed, n, *got[n].Configuration,
						got[n].server, *want[n].Configuration, want[n].server)
				}
			}
		}
	}
}

// At random rates, with every set of options, plans are legal, forecast what their instances carry, keep what runs
// while loads grow, and the same request gives the same plan.
func TestPlansThroughRandomRates(t *testing.T) {
	sets := []Options{
		{}, {Exact: true}, {Single: true}, {Fastest: true}, {Uniform: true}, {Uniform: true, First: true},
		{Single: true, Threads: 2, Percent: 10}, {Balanced: true, Headroom: 1.1}, {Balanced: true, Exact: true},
		{Dense: true}, {Undivided: true}, {Latency: 1.5}, {Merge: -1},
	}
	plans := 0
	for seed := uint64(1); seed <= 200; seed++ {
		rng := rand.New(rand.NewPCG(seed, 2))
		spec, believed, rates := random(rng)
		p := &Planner{Profile: believed, Options: sets[seed%uint64(len(sets))]}
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
					up[a]+shed*p.Options.filled().Headroom < out.Demand[a]*(1-1e-6) {
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
			snapshot = after(spec, out)
		}
	}
	if plans < 1000 {
		t.Errorf("only %d plans", plans)
	}
}

// §3.2, case iii: releasing instances brings the load back into the band, and the remaining instances carry it.
func TestRelease(t *testing.T) {
	spec, believed := testSpec(4, 32, 2, 0, []model{{200 * ms, 8, 5 * ms, 40 * ms}})
	p := &Planner{Profile: believed, Options: Options{Merge: -1}}
	first, err := p.Plan(context.Background(), plan.Request{Spec: spec, Rates: []float64{2000}})
	if err != nil || first.Shed != nil {
		t.Fatal(err, first)
	}
	var lows, ups float64
	for _, i := range first.Instances {
		lows, ups = lows+i.Low, ups+i.Up
	}
	for _, rate := range []float64{1990, 1500, 1000, 300, 20, 1} {
		out, err := p.Plan(context.Background(), plan.Request{
			Spec: spec, Rates: []float64{rate}, Snapshot: after(spec, first),
		})
		if err != nil {
			t.Fatal(err)
		}
		var low, up, least float64
		least = math.Inf(1)
		for _, i := range out.Instances {
			low, up, least = low+i.Low, up+i.Up, min(least, i.Up)
		}
		if up < rate {
			t.Errorf("%v queries/s: what is left carries %v", rate, up)
		}
		gone := len(first.Instances) - len(out.Instances)
		if up-least >= rate && rate < bandEdge(low, up, 0.8) {
			t.Errorf("%v queries/s: %v to %v, and one more could go", rate, low, up)
		}
		if gone > 0 && rate >= bandEdge(lows, ups, 0.8) {
			t.Errorf("%v queries/s: %d instances of %v to %v went", rate, gone, lows, ups)
		}
		if len(out.Instances) > len(first.Instances) || out.Loads > 0 {
			t.Errorf("%v queries/s: %d instances were %d", rate, len(out.Instances), len(first.Instances))
		}
	}
}

// A load that grew in small steps has small instances; once it is steady they become few large ones that take less.
func TestMerge(t *testing.T) {
	spec, believed := testSpec(4, 32, 2, 0, []model{{200 * ms, 16, 60 * ms, 5 * ms}})
	grow := func(o Options) *plan.Plan {
		p := &Planner{Profile: believed, Options: o}
		var out *plan.Plan
		for rate := 5.0; rate <= 800; rate += 5 {
			r := plan.Request{Spec: spec, Rates: []float64{rate}}
			if out != nil {
				r.Snapshot = after(spec, out)
			}
			var err error
			if out, err = p.Plan(context.Background(), r); err != nil || out.Shed != nil {
				t.Fatal(rate, err)
			}
		}
		return out
	}
	takes := func(p *plan.Plan) (sum float64) {
		for _, i := range p.Instances {
			d := &spec.DeviceTypes[i.Part-1]
			sum += defaultBeta*float64(d.Cores) + float64(d.Percent)
		}
		return sum
	}
	small, merged := grow(Options{Merge: -1}), grow(Options{})
	if !(takes(merged) < 0.8*takes(small)) || len(merged.Instances) >= len(small.Instances) {
		t.Errorf("%d instances take %v, %d merged ones %v", len(small.Instances), takes(small), len(merged.Instances),
			takes(merged))
	}
}

// If no function with a load can be served there is no plan, and the error says why. Next to one that can be served,
// such a function is left out.
func TestUnservable(t *testing.T) {
	spec, believed := testSpec(2, 8, 1, 0, []model{{2 * ms, 8, 5 * ms, 40 * ms}, {200 * ms, 8, 5 * ms, 40 * ms}})
	p := &Planner{Profile: believed}
	if _, err := p.Plan(context.Background(), plan.Request{Spec: spec, Rates: []float64{10, 0}}); err == nil {
		t.Error("a plan for an objective that nothing meets")
	}
	out, err := p.Plan(context.Background(), plan.Request{Spec: spec, Rates: []float64{10, 10}})
	if err != nil || out.Shed == nil || out.Shed[0] != 10 || out.Shed[1] != 0 {
		t.Errorf("%v: %+v", err, out)
	}
	if out, err = p.Plan(context.Background(), plan.Request{Spec: spec, Rates: []float64{0, 0}}); err != nil ||
		len(out.Instances) > 0 {
		t.Errorf("scaled to zero: %v: %+v", err, out)
	}
	if out, err = p.Plan(context.Background(), plan.Request{Spec: spec}); err != nil || len(out.Instances) != 1 {
		t.Errorf("before anything is known: %v: %+v", err, out)
	}
}
