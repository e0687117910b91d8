package later

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// The claims of the abstract of Symphony (arXiv 2308.07470).
const (
	symphonyGain  = 5.0 // goodput over systems before it, with as many machines
	symphonySaves = 0.4 // of the machines are needed for the same load
)

// vision is so many models of one variant each: a batch of b takes 5 + b ms, within 30 ms.
func vision(models, machines int) *setting {
	s := &setting{machines: machines, slo: 30 * ms, maxBatch: 32}
	for n := range models {
		s.apps = append(s.apps, []stage{{fmt.Sprint("model-", n), []model{
			{fmt.Sprint("model-", n, "-a"), 0.8, 5 * ms, ms},
		}, 0}})
	}
	return s
}

// eager returns symphony with batches that start as soon as a machine is free, as systems before it do: the first
// queries of a central queue go to the first free machine, in the largest batch that is in time.
func eager() systems.System {
	s := reproduce.System("symphony")
	s.Name, s.Router, s.Batcher = "eager", "fcfs", "earlydrop"
	return s
}

// dispatched are the systems of the figures, on all machines all the time: no plan is made during a run.
func dispatched() []systems.System {
	out := slices.Insert(reproduce.Systems("symphony", "clkwrk", "nexus-batching"), 1, eager())
	for n := range out {
		out[n].Planner, out[n].Scaler = "resident", "fixed"
	}
	return out
}

const symphonyMachineCount = 16

var onePercent = limits{late: 1}

// symphonyGoodput compares what 16 machines carry.
func symphonyGoodput(r *runner, f *reproduce.Sheet) error {
	// No more than machines with full batches of half the objective each.
	const atMost = float64(symphonyMachineCount) * 32 / 0.037
	panel := f.Chart("S1", "Symphony: what 16 machines carry (modelled)", 1).Bars("goodput (queries/s)")
	counts, list := []int{1, 4, 16}, dispatched()
	carried := make(map[int]func(systems.System) reproduce.Values) // by number of models
	for _, count := range counts {
		env, err := vision(count, symphonyMachineCount).environment(r.Solver)
		if err != nil {
			return err
		}
		carried[count] = func(s systems.System) reproduce.Values {
			return r.carried(fmt.Sprint("S1 ", count), env, s, onePercent, atMost, 3*time.Second)
		}
	}
	for n, s := range list {
		for _, count := range counts {
			at, goodput := f.At("models", count), carried[count](s)
			at.Row(s.Name, "goodput", "queries/s", goodput)
			if n > 0 {
				gain := at.Row(s.Name, "deferred in parts of it", "", timesOver(carried[count](list[0]), goodput))
				if s.Name == "eager" {
					gain.Published(symphonyGain, "abstract: up to")
				}
			}
			panel.Bar(s.Name, fmt.Sprint(count, " models"), goodput)
		}
	}
	f.Note("Figure S1: the highest rate at which at most 1 % miss the objective of 30 ms. " +
		"eager is symphony with batches that start as soon as a machine is free; clkwrk runs one query at a time.")
	return nil
}

// symphonyModels is how many models Figure S2 has.
const symphonyModels = 4

// symphonyMachines shows how the machines in use follow the load, and how many a load needs.
func symphonyMachines(r *runner, f *reproduce.Sheet) error {
	env, err := vision(symphonyModels, symphonyMachineCount).environment(r.Solver)
	if err != nil {
		return err
	}
	c := f.Chart("S2", "Symphony: machines by load, four models (modelled)", 2)
	inUse := c.Panel("in use of 16", "load (queries/s)", 0, reproduce.Auto)
	need := c.Panel("needed", "load (queries/s)", 0, reproduce.Auto)
	list := dispatched()[:2]
	for n, s := range list {
		for _, rate := range []float64{500, 1000, 2000, 4000, 6000, 8000} {
			at := f.At("load", rate)
			x := r.simulation(fmt.Sprint("S2 ", s.Name, " ", rate), env, s, constant(rate, r.span(10*time.Second)))
			used := x.Each(func(x *outcome) float64 { return meanOf(x.busy, 0.2, 1) })
			at.Row(s.Name, "machines in use of 16", "", used)
			at.Row(s.Name, "violations", "%", x.Each(violations))
			at.Row(s.Name, "mean batch", "", x.Each(func(x *outcome) float64 { return x.batch }))
			at.Row(s.Name, "machines needed", "", r.needed(s, rate))
			if n == 0 {
				at.Row(s.Name, "machines needed in parts of eager's", "",
					timesOver(r.needed(s, rate), r.needed(list[1], rate))).
					Published(symphonySaves, "abstract: 60 % fewer")
			}
			inUse.Point(s.Name, rate, used)
			need.Point(s.Name, rate, r.needed(s, rate))
		}
	}
	f.Note("Figure S2: a machine is in use in a second in which a batch begins on it. Needed " +
		"are the fewest machines with which at most 1 % miss the objective.")
	return nil
}

// needed adds a search for the fewest machines.
func (r *runner) needed(s systems.System, rate float64) reproduce.Values {
	return reproduce.All(reproduce.Add(r.Runner, fmt.Sprint("S2 needed ", s.Name, " ", rate), 2, r.Seeds,
		func(ctx context.Context, seed uint64) (float64, error) { return r.leastMachines(ctx, s, rate, seed) }))
}

// leastMachines returns the fewest machines with which a system carries a load.
func (r *runner) leastMachines(ctx context.Context, s systems.System, rate float64, seed uint64) (float64, error) {
	low, high := 0, 4*symphonyMachineCount
	for high-low > 1 {
		n := (low + high) / 2
		env, err := vision(symphonyModels, n).environment(r.Solver)
		if err != nil {
			return 0, err
		}
		got, err := simulate(ctx, env, s, constant(rate, r.span(3*time.Second)), seed)
		if err != nil {
			return 0, err
		}
		if onePercent.met(got) {
			high = n
		} else {
			low = n
		}
	}
	return float64(high), nil
}
