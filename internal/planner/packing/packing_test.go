package packing

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/packingtest"
	"github.com/sluice-serving/sluice/policy/plan"
)

const ms = time.Millisecond

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

// §3.2, case iii: releasing instances brings the load back into the band, and the remaining instances carry it.
func TestRelease(t *testing.T) {
	spec, believed := packingtest.Spec(4, 32, 2, 0, []packingtest.Model{
		{SLO: 200 * ms, Batch: 8, Fixed: 5 * ms, Work: 40 * ms},
	})
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
			Spec: spec, Rates: []float64{rate}, Snapshot: packingtest.After(spec, first),
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
	spec, believed := packingtest.Spec(4, 32, 2, 0, []packingtest.Model{
		{SLO: 200 * ms, Batch: 16, Fixed: 60 * ms, Work: 5 * ms},
	})
	grow := func(o Options) *plan.Plan {
		p := &Planner{Profile: believed, Options: o}
		var out *plan.Plan
		for rate := 5.0; rate <= 800; rate += 5 {
			r := plan.Request{Spec: spec, Rates: []float64{rate}}
			if out != nil {
				r.Snapshot = packingtest.After(spec, out)
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
	spec, believed := packingtest.Spec(2, 8, 1, 0, []packingtest.Model{
		{SLO: 2 * ms, Batch: 8, Fixed: 5 * ms, Work: 40 * ms}, {SLO: 200 * ms, Batch: 8, Fixed: 5 * ms, Work: 40 * ms},
	})
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
