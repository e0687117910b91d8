package server

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/internal/limits"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
)

// A client that begins thousands of sequences, each with the highest rate that may be announced, on machines that are
// rented, has the server plan for a bounded rate, now and then. No plan fails.
func TestAFloodOfSequencesOnRentedMachines(t *testing.T) {
	rented := strings.Replace(hosttest.Fakes, "{name: d,", "{name: d, tenure: rented,", 1)
	var mu sync.Mutex
	plans, highest := 0, 0.0
	var failures []string
	s := running(t, rented, Options{Observe: func(_ serving.Time, _ []engine.Input, out []engine.Decision) {
		mu.Lock()
		defer mu.Unlock()
		for k := range out {
			switch d := &out[k]; d.Kind {
			case engine.RequestPlan:
				plans, highest = plans+1, max(highest, d.Request.Rates[0])
			case engine.KeepPlan:
				failures = append(failures, d.Failure.Err)
			}
		}
	}})
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	infer := s.service.Chain(server.Links{})
	const clients, each = 64, 143
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for k := range each {
				// It may be refused: nobody serves so much.
				_, _ = infer(t.Context(), &dataplane.Request{
					Items: 1, Variant: serving.None, Stream: fmt.Sprint(c, " ", k), Begins: true,
					Rate: limits.SequenceRate,
				})
			}
		})
	}
	all.Wait()
	until := s.plane.Now()
	mu.Lock()
	defer mu.Unlock()
	if most := 2 + int(until.Seconds()/scale.Pause.Seconds()); plans > most {
		t.Errorf("%d plans in %v, want at most %d", plans, until, most)
	}
	if highest > limits.Announced*1.01 || highest < limits.Announced {
		t.Errorf("a plan is made for %v queries/s, want %v", highest, limits.Announced)
	}
	if len(failures) > 0 {
		t.Errorf("%d plans failed: %s", len(failures), failures[0])
	}
}

// Every system plans, or says why not, for the least and the highest demand that a file or a client may ask for, on
// machines that are owned and rented. A demand beyond that is refused when the file is read.
func TestExtremeDemands(t *testing.T) {
	for tenure, rates := range map[string][]float64{
		"owned": {0, limits.Demand}, "rented": {1e-300, limits.Announced},
	} {
		text := strings.Replace(hosttest.Fakes, "{name: d,", "{name: d, tenure: "+tenure+",", 1)
		p := hosttest.Profiled(t, text)
		for _, name := range systems.Names() {
			system, err := systems.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			planner, err := p.Planner(system)
			if fault.Of(err) == fault.Missing {
				t.Skip(err)
			}
			if err != nil {
				t.Logf("%s: %v", name, err)
				continue
			}
			if planner.Provides()&plan.Tables != 0 {
				continue // its policies take long, and are for rates that a machine carries
			}
			for _, rate := range rates {
				made, err := dataplane.MakePlan(t.Context(), planner, plan.Request{
					Spec: p.Spec(), Rates: []float64{rate}, Beliefs: p.Latencies(),
				})
				if err == nil {
					err = made.Validate(p.Spec())
				}
				if err != nil && strings.Contains(err.Error(), "panicked") {
					t.Errorf("%s, %s machines, %v queries/s: %v", name, tenure, rate, err)
				}
			}
		}
	}
	_, err := host.Open(hosttest.Write(t, strings.Replace(hosttest.Apps, "    slo:", "    demand: 1e300\n    slo:", 1)),
		host.Options{})
	if err == nil || !strings.Contains(err.Error(), "apps[0].demand: is 1e+300, want") ||
		fault.Of(err) != fault.Config {
		t.Errorf("a demand of 1e300: %v", err)
	}
}
