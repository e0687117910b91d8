package infless

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim"
	"github.com/sluice-serving/sluice/sim/truth"
)

// starting is machines on which an instance takes two seconds to start.
type starting struct{ truth.Model }

func (starting) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 2 * time.Second }

// started returns what runs a system in a world.
func started(t *testing.T, w *experiment.Environment, s systems.System) (plan.Planner, *engine.Engine, truth.Model) {
	t.Helper()
	p, err := s.NewPlanner(w.Known())
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Engine(w.Spec, w.Beliefs, p.Provides())
	if err != nil {
		t.Fatal(err)
	}
	machines, err := w.Truth(nil)
	if err != nil {
		t.Fatal(err)
	}
	return p, e, machines
}

// Planner, router and scaler of infless work together on the paper's cluster. The load goes from nothing up a step,
// down again and to nothing, and a query that comes after that is answered.
func TestServerless(t *testing.T) {
	w, err := newEnvironment(osvt, servers)
	if err != nil {
		t.Fatal(err)
	}
	for a := range w.Spec.Apps {
		w.Spec.Apps[a].ColdWait = 20 * time.Second
	}
	s, err := systems.Get("infless")
	if err != nil {
		t.Fatal(err)
	}
	s.Options.KeepAlive.Rule = "keepalive"
	p, e, machines := started(t, w, s)
	rng := rand.New(rand.NewPCG(1, 1))
	rates := []float64{100, 600, 150} // a minute each
	var load []workload.Arrival
	for at := 0.0; at < 180; at += rng.ExpFloat64() / rates[min(int(at/60), 2)] {
		load = append(load, workload.Arrival{
			At: serving.Time(at * 1e9), App: serving.AppID(rng.IntN(3)), Items: 1, Variant: serving.None, Sample: -1,
		})
	}
	load = append(load, workload.Arrival{At: 600e9, Items: 1, Variant: serving.None, Sample: -1})
	asked, late, all, live := [4]int{}, [4]int{}, [4]int{}, [601]int{}
	answered, gone := serving.Time(0), false
	_, err = sim.Run(sim.Config{Spec: w.Spec, Engine: e, Truth: starting{machines}, Initial: &plan.Plan{},
		Source: workload.FromSlice(load), Planner: p, PlanDelay: 10 * time.Millisecond,
		Observe: func(now serving.Time, _ []engine.Input, out []engine.Decision) {
			for i := range out {
				switch d := &out[i]; d.Kind {
				case engine.RequestPlan:
					if k := int(now / 60e9); now%60e9 > 30e9 && k < 3 {
						asked[k]++
					}
				case engine.EndQuery:
					if k := int(d.Arrived / 60e9); d.Arrived%60e9 > 30e9 && k < 3 {
						all[k]++
						if d.Outcome != serving.Served || d.Late {
							late[k]++
						}
					}
					if d.Arrived == 600e9 && d.Outcome == serving.Served {
						answered = now
					}
				}
			}
			gone = gone || now > 400e9 && now < 600e9 && len(e.Fleet().Live()) == 0
			if now < 601e9 {
				live[now/1e9] = len(e.Fleet().Live())
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	for k, rate := range rates {
		share := float64(late[k]) / float64(all[k])
		t.Logf("%v queries/s: %.1f %% late, %d plans, %d instances", rate, 100*share, asked[k], live[60*k+59])
		if share > 0.08 || asked[k] > 3 {
			t.Errorf("at a steady %v queries/s %.1f %% are late, %d plans in half a minute", rate, 100*share, asked[k])
		}
	}
	if live[59] == 0 || live[119] <= 2*live[59] || live[179] >= live[119]/2 || !gone {
		t.Errorf("instances at the end of each minute: %d, %d, %d; let go: %v", live[59], live[119], live[179], gone)
	}
	if wait := answered - 600e9; wait < 2e9 || wait > 3e9 {
		t.Errorf("a query that found nothing was answered after %v", wait)
	}
}
