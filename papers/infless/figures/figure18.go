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
func figure18(run *runner) error {
	byCount, byObjective := make(map[string][]*reproduce.Task), make(map[string][]*reproduce.Task)
	for _, system := range systems18 {
		for _, n := range functionCounts {
			t := run.unitThroughputTask(fmt.Sprint(n, " functions"), system, variedFunctions(n, 0))
			byCount[system] = append(byCount[system], t)
		}
		for _, slo := range objectives {
			t := run.unitThroughputTask(fmt.Sprint("20 functions at ", slo), system, variedFunctions(20, slo))
			byObjective[system] = append(byObjective[system], t)
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		for c, n := range functionCounts {
			addUnitThroughputs18(o, "18a", reproduce.Setting("functions", n), c, byCount, published18a)
		}
		for c, slo := range objectives {
			addUnitThroughputs18(o, "18b", reproduce.Setting("objective", slo), c, byObjective, published18b)
		}
		o.Notes = append(o.Notes,
			"Figure 18: served queries/s divided by allocated resources, a thread counting 64/142 of a per cent of "+
				"an accelerator; functions have 100 to 400 queries/s. What the cluster has no room for, or nothing "+
				"serves within its objective, is not counted as served.")
		return nil
	})
	return nil
}

var systems18 = []string{"infless", "batch", "openfaas+", "infless-balanced", "infless-dense"}

// unitThroughputTask adds a task that plans for functions. Its result is the served rate for a unit of resources, in
// queries/s for a per cent of an accelerator.
func (run *runner) unitThroughputTask(key, system string, functions []function) *reproduce.Task {
	return run.AddTask("throughput for resources, "+key+", by "+system, 3, 1,
		func(ctx context.Context, _ uint64) (any, error) {
			w, err := newEnvironment(functions, largeServers)
			if err != nil {
				return nil, err
			}
			p, err := newPlanningSystem(w, system)
			if err != nil {
				return nil, err
			}
			rates := reproduce.Scaled(loadShares(len(functions)), 100)
			out, _ := p.plan(ctx, rates)
			if out == nil {
				return 0.0, nil
			}
			served := reproduce.Sum(rates)
			for a := range out.Shed {
				served -= out.Shed[a]
			}
			resources, _, _ := p.resources(out)
			return served / resources, nil
		})
}

// addUnitThroughputs18 adds the rows of one place on the axis. tasks and published are by system, then by place.
func addUnitThroughputs18(o *reproduce.Outcome, figure string, setting map[string]string, place int,
	tasks map[string][]*reproduce.Task, published map[string][]float64) {
	unit := func(system string, place int) float64 { return tasks[system][place].Results[0].(float64) }
	most := 0.0
	for p := range tasks["infless"] {
		most = max(most, unit("infless", p))
	}
	for _, system := range systems18 {
		y := unit(system, place)
		r := row(figure, system, "throughput for resources", "of infless's largest", setting)
		if p := published[system]; p != nil {
			r = r.WithPublished(p[place], "Figure 18, plotting code")
		}
		o.AddRow(r, y/most)
		o.AddRow(row(figure, system, "throughput for resources", "queries/s for a per cent", setting), y)
		if system != "infless" {
			continue
		}
		for _, base := range []string{"batch", "openfaas+"} {
			if b := unit(base, place); b > 0 {
				o.AddRow(row(figure, system, "over "+base, "", setting).WithPublished(
					published["infless"][place]/published[base][place], "Figure 18, plotting code"), y/b)
			}
		}
	}
}
