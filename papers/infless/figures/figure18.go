package infless

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// Published throughput for a unit of resources, relative to the largest of each part of the figure (Figure 18, plotting
// code).
var (
	functionCounts = []int{10, 20, 30, 40}
	published18a   = map[string][]float64{
		"infless": {.968, 1, .968, .935}, "batch": {.333, .349, .376, .419}, "openfaas+": {.215, .226, .237, .237},
	}
	objectives   = []time.Duration{150 * ms, 200 * ms, 250 * ms, 300 * ms}
	published18b = map[string][]float64{
		"infless": {.706, .912, .929, 1}, "batch": {.294, .319, .333, .343}, "openfaas+": {.206, .206, .206, .211},
	}
)

// figure18 shows the throughput for a unit of allocated resources, by number of functions and by objective.
func figure18(run *runner, f *reproduce.Sheet) error {
	var byCount, byObjective []place18
	for _, n := range functionCounts {
		byCount = append(byCount, place18{f.Part("18a").At("functions", n), fmt.Sprint(n, " functions"),
			variedFunctions(n, 0)})
	}
	for _, slo := range objectives {
		byObjective = append(byObjective, place18{f.Part("18b").At("objective", slo),
			fmt.Sprint("20 functions at ", slo), variedFunctions(20, slo)})
	}
	run.addUnitThroughputs18(byCount, published18a)
	run.addUnitThroughputs18(byObjective, published18b)
	f.Note("Figure 18: served queries/s divided by allocated resources, a thread counting 64/142 of a per cent of " +
		"an accelerator; functions have 100 to 400 queries/s. What the cluster has no room for, or nothing " +
		"serves within its objective, is not counted as served.")
	return nil
}

// place18 is a place on an axis of Figure 18.
type place18 struct {
	reproduce.Place
	key       string
	functions []function
}

var systems18 = []string{"infless", "batch", "openfaas+", "infless-balanced", "infless-dense"}

// unitThroughput adds a task that plans for functions. Its result is the served rate for a unit of resources, in
// queries/s for a per cent of an accelerator.
func (run *runner) unitThroughput(key, system string, functions []function) reproduce.Runs[float64] {
	return reproduce.Add(run.Runner, "throughput for resources, "+key+", by "+system, 3, 1,
		func(ctx context.Context, _ uint64) (float64, error) {
			w, err := newEnvironment(functions, largeServers)
			if err != nil {
				return 0, err
			}
			p, err := newPlanningSystem(w, system)
			if err != nil {
				return 0, err
			}
			rates := reproduce.Scaled(loadShares(len(functions)), 100)
			out, _ := p.plan(ctx, rates)
			if out == nil {
				return 0, nil
			}
			served := reproduce.Sum(rates)
			for a := range out.Shed {
				served -= out.Shed[a]
			}
			resources, _, _ := p.resources(out)
			return served / resources, nil
		})
}

// addUnitThroughputs18 adds the rows along an axis. published is by system, then by place.
func (run *runner) addUnitThroughputs18(places []place18, published map[string][]float64) {
	const source = "Figure 18, plotting code"
	unit := func(system string, p place18) reproduce.Values {
		return reproduce.All(run.unitThroughput(p.key, system, p.functions))
	}
	most := func() []float64 {
		most := 0.0
		for _, p := range places {
			most = max(most, unit("infless", p).Mean())
		}
		return []float64{most}
	}
	for c, p := range places {
		for _, system := range systems18 {
			y := unit(system, p)
			p.Row(system, "throughput for resources", "of infless's largest", y.Over(most)).
				Published(reproduce.InList(published, system, c), source)
			p.Row(system, "throughput for resources", "queries/s for a per cent", y)
			if system != "infless" {
				continue
			}
			for _, base := range []string{"batch", "openfaas+"} {
				// What carries nothing is no base: its ratio is not finite and has no row.
				p.Row(system, "over "+base, "", y.Over(unit(base, p))).
					Published(published["infless"][c]/published[base][c], source)
			}
		}
	}
}
