package later

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/plot"
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
	s := system("symphony")
	s.Name, s.Router, s.Batcher = "eager", "fcfs", "earlydrop"
	return s
}

// dispatched are the systems of the figures, on all machines all the time: no plan is made during a run.
func dispatched() []systems.System {
	out := []systems.System{system("symphony"), eager(), system("clkwrk"), system("nexus-batching")}
	for n := range out {
		out[n].Planner, out[n].Scaler = "resident", "fixed"
	}
	return out
}

const symphonyMachineCount = 16

var onePercent = limits{late: 1}

// symphonyGoodput compares what 16 machines carry.
func symphonyGoodput(r *runner) error {
	counts := []int{1, 4, 16}
	list := dispatched()
	tasks := make([][]*reproduce.Task, len(counts))
	for c, count := range counts {
		env, err := vision(count, symphonyMachineCount).environment(r.Solver)
		if err != nil {
			return err
		}
		// No more than machines with full batches of half the objective each.
		atMost := float64(symphonyMachineCount) * 32 / 0.037
		for _, s := range list {
			tasks[c] = append(tasks[c], r.AddTask(fmt.Sprint("S1 ", s.Name, " ", count), 2, r.Seeds,
				func(ctx context.Context, seed uint64) (any, error) {
					return mostCarried(ctx, env, s, onePercent, atMost, r.span(3*time.Second), seed)
				}))
		}
	}
	r.Report(func(o *reproduce.Outcome) error {
		var lines []plot.Line
		var groups []string
		for n, s := range list {
			line := plot.Line{Name: s.Name}
			for c, count := range counts {
				at := reproduce.Setting("models", count)
				each := reproduce.Each(tasks[c][n], number)
				o.AddRow(row("S1", s.Name, "goodput", "queries/s", at), each...)
				if n > 0 {
					x := row("S1", s.Name, "deferred in parts of it", "", at)
					if s.Name == "eager" {
						x = x.WithPublished(symphonyGain, "abstract: up to")
					}
					o.AddRow(x, ratios(reproduce.Each(tasks[c][0], number), each)...)
				}
				line.Y = append(line.Y, reproduce.Mean(each))
				if n == 0 {
					groups = append(groups, fmt.Sprint(count, " models"))
				}
			}
			lines = append(lines, line)
		}
		o.AddChart("S1", "Symphony: what 16 machines carry (modelled)", 1, reproduce.Bars("goodput (queries/s)", groups,
			lines...))
		o.Notes = append(o.Notes, "Figure S1: the highest rate at which at most 1 % miss the objective of 30 ms. "+
			"eager is symphony with batches that start as soon as a machine is free; clkwrk runs one query at a time.")
		return nil
	})
	return nil
}

// symphonyModels is how many models Figure S2 has.
const symphonyModels = 4

// symphonyMachines shows how the machines in use follow the load, and how many a load needs.
func symphonyMachines(r *runner) error {
	list := dispatched()[:2]
	loads := []float64{500, 1000, 2000, 4000, 6000, 8000}
	env, err := vision(symphonyModels, symphonyMachineCount).environment(r.Solver)
	if err != nil {
		return err
	}
	used, needed := make([][]*reproduce.Task, len(list)), make([][]*reproduce.Task, len(list))
	for n, s := range list {
		for _, rate := range loads {
			used[n] = append(used[n], r.simulation(fmt.Sprint("S2 ", s.Name, " ", rate), env, s,
				constant(rate, r.span(10*time.Second))))
			needed[n] = append(needed[n], r.AddTask(fmt.Sprint("S2 needed ", s.Name, " ", rate), 2, r.Seeds,
				func(ctx context.Context, seed uint64) (any, error) {
					return r.leastMachines(ctx, s, rate, seed)
				}))
		}
	}
	r.Report(func(o *reproduce.Outcome) error {
		var inUse, need []plot.Line
		for n, s := range list {
			a, b := plot.Line{Name: s.Name, X: loads}, plot.Line{Name: s.Name, X: loads}
			for k, rate := range loads {
				at := reproduce.Setting("load", rate)
				each := reproduce.Each(used[n][k], func(x *outcome) float64 { return meanOf(x.busy, 0.2, 1) })
				o.AddRow(row("S2", s.Name, "machines in use of 16", "", at), each...)
				o.AddRow(row("S2", s.Name, "violations", "%", at), reproduce.Each(used[n][k], func(x *outcome) float64 {
					return x.violations
				})...)
				o.AddRow(row("S2", s.Name, "mean batch", "", at), reproduce.Each(used[n][k], func(x *outcome) float64 {
					return x.batch
				})...)
				least := reproduce.Each(needed[n][k], number)
				o.AddRow(row("S2", s.Name, "machines needed", "", at), least...)
				if n == 0 {
					x := row("S2", s.Name, "machines needed in parts of eager's", "", at)
					o.AddRow(x.WithPublished(symphonySaves, "abstract: 60 % fewer"),
						ratios(least, reproduce.Each(needed[1][k], number))...)
				}
				a.Y, b.Y = append(a.Y, reproduce.Mean(each)), append(b.Y, reproduce.Mean(least))
			}
			inUse, need = append(inUse, a), append(need, b)
		}
		o.AddChart("S2", "Symphony: machines by load, four models (modelled)", 2,
			plot.Panel{Name: "in use of 16", XName: "load (queries/s)", Lines: inUse, Low: 0, High: math.NaN()},
			plot.Panel{Name: "needed", XName: "load (queries/s)", Lines: need, Low: 0, High: math.NaN()})
		o.Notes = append(o.Notes, "Figure S2: a machine is in use in a second in which a batch begins on it. Needed "+
			"are the fewest machines with which at most 1 % miss the objective.")
		return nil
	})
	return nil
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
