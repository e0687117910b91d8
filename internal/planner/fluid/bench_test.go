package fluid

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
)

// fleetOf draws a fleet of three kinds of machines with apps of five variants each. Memory holds about a third of them.
func fleetOf(workers, apps int, price float64) *world {
	rng := rand.New(rand.NewPCG(7, 8))
	w := &world{}
	for k := range 3 {
		n := workers/3 + (workers%3+2-k)/3
		w.machines(n, []float64{1, 0.5, 2}[k], price*[]float64{1, 1.8, 0.6}[k], int64(apps)*5*100*mebi/3)
	}
	for range apps {
		w.app(time.Duration(50+rng.IntN(150))*ms, (0.5+rng.Float64())*100*float64(workers)/float64(apps))
		for v := range 5 {
			w.variant(time.Duration(1+v)*ms, time.Duration(2+2*v)*ms, 0.6+0.08*float64(v), int64(40+rng.IntN(120))*mebi)
		}
	}
	return w
}

func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct {
		workers, apps int
		price         float64
	}{{40, 10, 0}, {40, 10, 1}, {2000, 50, 0}, {2000, 50, 1}} {
		name := fmt.Sprintf("%dx%d", c.workers, c.apps)
		if c.price > 0 {
			name += "-rented"
		}
		b.Run(name, func(b *testing.B) {
			w := fleetOf(c.workers, c.apps, c.price)
			p := &Planner{Profile: w}
			r := plan.Request{Spec: &w.Spec, Rates: w.rates}
			for b.Loop() {
				out, err := p.Plan(context.Background(), r)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(out.Gap, "gap")
			}
		})
	}
}

// The first plan, when there is no time to improve it.
func BenchmarkFirstPlan(b *testing.B) {
	for _, c := range []struct{ workers, apps int }{{40, 10}, {2000, 50}} {
		b.Run(fmt.Sprintf("%dx%d", c.workers, c.apps), func(b *testing.B) {
			w := fleetOf(c.workers, c.apps, 0)
			p := &Planner{Profile: w}
			ended, end := context.WithCancel(context.Background())
			end()
			for b.Loop() {
				out, err := p.Plan(ended, plan.Request{Spec: &w.Spec, Rates: w.rates})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(out.Gap, "gap")
			}
		})
	}
}

// A plan for more apps than machines hold at once.
func BenchmarkPlanCrowded(b *testing.B) {
	for _, c := range []struct{ machines, apps, hold int }{
		{100, 200, 8}, {1000, 200, 4}, {300, 1000, 10}, {2000, 1000, 4},
	} {
		b.Run(fmt.Sprintf("%dx%d", c.machines, c.apps), func(b *testing.B) {
			w := crowded(c.machines, c.apps, c.hold)
			p := &Planner{Profile: w, Options: Options{Pooled: true}}
			for b.Loop() {
				out, err := p.Plan(b.Context(), plan.Request{Spec: &w.Spec, Rates: w.rates})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(out.Gap, "gap")
			}
		})
	}
}
