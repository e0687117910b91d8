package infless

import (
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim"
)

// With one-to-one mapping there are as many instances as there were queries at once, once they have started, and no
// more: after the first minutes nobody waits, and the instances are those of the fullest instant or fewer.
func TestOneToOneMapping(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		w, err := newEnvironment(osvt, servers)
		if err != nil {
			t.Fatal(err)
		}
		s, err := systems.Get("openfaas+-one-to-one")
		if err != nil {
			t.Fatal(err)
		}
		p, e, machines := started(t, w, s)
		rng := rand.New(rand.NewPCG(seed, 1))
		const rate, span = 30, 240.0 // queries/s of one app, s
		var load []workload.Arrival
		for at := 0.0; at < span; at += rng.ExpFloat64() / rate {
			load = append(load, workload.Arrival{
				At: serving.Time(at * 1e9), Items: 1, Variant: serving.None, Sample: -1,
			})
		}
		most, instances, late, all := 0, 0, 0, 0
		_, err = sim.Run(sim.Config{Spec: w.Spec, Engine: e, Truth: starting{machines}, Initial: &plan.Plan{},
			Source: workload.FromSlice(load), Planner: p,
			Observe: func(now serving.Time, _ []engine.Input, out []engine.Decision) {
				n := e.Waiting(0)
				for _, i := range e.Fleet().Live() {
					n += i.Outstanding()
				}
				most, instances = max(most, n), max(instances, len(e.Fleet().Live()))
				for i := range out {
					if d := &out[i]; d.Kind == engine.EndQuery && d.Arrived > 180e9 {
						if all++; d.Outcome != serving.Served || d.Late {
							late++
						}
					}
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if instances > most || instances < most/2 {
			t.Errorf("seed %d: %d instances for at most %d queries at once", seed, instances, most)
		}
		if all == 0 || late > all/100 {
			t.Errorf("seed %d: %d of %d are late in the end", seed, late, all)
		}
	}
}
