package test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/proteus"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// pricedFleet is workers of two device types at 1 $/h each, counts of each, with one app that both can serve.
func pricedFleet(counts ...int) *simtest.Cluster {
	return simtest.Typed(counts, [][2]time.Duration{
		{5 * time.Millisecond, time.Millisecond}, {10 * time.Millisecond, 2 * time.Millisecond},
	}, 200*time.Millisecond, 8)
}

// Prices change while a server runs. Every planner forecasts the rent of the workers it uses at the prices of the
// request, not at those of the configuration.
func TestForecastUsesPricesOfRequest(t *testing.T) {
	for _, name := range systems.Planners() {
		counts := []int{2, 3}
		if name == "tidal" {
			counts = []int{3, 0} // it pools workers of one type
		}
		c := pricedFleet(counts...)
		var placement []static.Instance
		for w := range c.Spec.Workers {
			placement = append(placement, static.Instance{
				Worker: serving.WorkerID(w), Variants: []serving.VariantID{0},
			})
		}
		// Two instances share the first worker: its price counts once.
		placement = append(placement, placement[0])
		p, err := systems.NewPlanner(name, systems.PlannerInputs{
			Profile: c.Profile, Solver: highstest.Solver(t), Placement: placement,
		}, systems.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, prices := range [][]float64{nil, {7, 0.25}} {
			r := plan.Request{Spec: c.Spec, Rates: []float64{40}, Prices: prices}
			out, err := p.Plan(context.Background(), r)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want, used := 0.0, make(map[serving.WorkerID]bool)
			for _, i := range out.Instances {
				if !used[i.Worker] {
					used[i.Worker] = true
					want += r.Price(c.Spec.Workers[i.Worker].DeviceType)
				}
			}
			if got := out.Forecast.CostPerHour; math.Abs(got-want) > 1e-9 || want == 0 {
				t.Errorf("%s at prices %v: the forecast is %v $/h, %d workers cost %v", name, prices, got, len(used),
					want)
			}
		}
	}
}

// The workers that would let a fleet carry its demand are priced, and chosen, at the prices of the request.
func TestDiagnosisUsesPricesOfRequest(t *testing.T) {
	c := pricedFleet(1, 1)
	p := &proteus.Planner{Profile: c.Profile, Solver: highstest.Solver(t)}
	for _, prices := range [][]float64{{7, 0.25}, {0.25, 7}} {
		d, err := proteus.Diagnose(context.Background(), p, plan.Request{
			Spec: c.Spec, Rates: []float64{3000}, Prices: prices,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Remedies) == 0 || len(d.Remedies[0].Add) == 0 {
			t.Fatalf("no workers to add: %+v", d)
		}
		for _, m := range d.Remedies {
			want := 0.0
			for _, a := range m.Add {
				want += float64(a.Workers) * prices[a.Device]
			}
			if math.Abs(m.CostPerHour-want) > 1e-9 {
				t.Errorf("at prices %v: %+v costs %v $/h, the diagnosis says %v", prices, m.Add, want, m.CostPerHour)
			}
		}
		cheap := serving.DeviceTypeID(1)
		if prices[0] < prices[1] {
			cheap = 0
		}
		if first := d.Remedies[0].Add; len(first) != 1 || first[0].Device != cheap {
			t.Errorf("at prices %v the cheapest mend adds %+v, want workers of type %d only", prices, first, cheap)
		}
	}
}
