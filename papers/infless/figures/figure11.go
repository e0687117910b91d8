package infless

import (
	"context"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// capacity is the highest load of a cluster, in queries/s: as planned, as a linear program allows, and as served in
// time.
type capacity struct{ planned, bound, inTime float64 }

// Published maxima in queries/s (Figure 11, the numbers in the authors' plotting code), by application and system.
var published11 = map[string]map[string]float64{
	"OSVT": {
		"openfaas+": 567, "batch": 1151, "infless": 2952, "infless-without-batching": 1604,
		"infless-without-scheduling": 2305, "infless-op1.5": 1905, "infless-op2": 836,
	},
	"Q&A": {
		"openfaas+": 736, "batch": 1932, "infless": 4602, "infless-without-batching": 1816,
		"infless-without-scheduling": 4475, "infless-op1.5": 3021, "infless-op2": 2552,
	},
}

var stressSystems = []string{
	"openfaas+", "batch", "batch+rs", "infless", "infless-without-batching", "infless-without-scheduling",
	"infless-op1.5", "infless-op2", "infless-release", "infless-balanced", "infless-dense", systems.Default,
}

// scenario is an application with the loads of its functions: equal ones, or in proportion to shares.
type scenario struct {
	name, mix string
	functions []function
	shares    []float64 // nil for equal loads
}

// scenarios are the applications with equal loads of all functions, and OSVT with the loads of the authors' own stress
// run: peaks of 200, 600 and 400 queries/s for ssd, mobilenet and resnet-50.
var scenarios = []scenario{{"OSVT", "equal", osvt, nil}, {"OSVT", "1:3:2", osvt, []float64{1, 3, 2}},
	{"Q&A", "equal", qa, nil}}

// figure11 finds the highest constant load that the cluster carries.
func figure11(run *runner) error {
	tasks := make(map[[3]string]*reproduce.Task) // by application, loads and system
	for _, s := range scenarios {
		for _, system := range stressSystems {
			key := "stress of " + s.name + ", " + s.mix + ", by " + system
			tasks[[3]string{s.name, s.mix, system}] = run.AddTask(key, 10, run.Seeds,
				func(ctx context.Context, seed uint64) (any, error) {
					return run.stress(ctx, s, system, seed)
				})
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		var panels []plot.Panel
		for _, s := range scenarios {
			panels = append(panels, addScenario11(o, s, func(system string) *reproduce.Task {
				return tasks[[3]string{s.name, s.mix, system}]
			}))
		}
		addChart(o, "11", "11: the highest load that 8 servers carry", 1, panels...)
		o.Notes = append(o.Notes,
			"Figure 11: rates are of all functions together; they have the same load, or for OSVT that of the "+
				"authors' stress run. Planned: the highest load for which a plan leaves nothing out. Allowed: what a "+
				"linear program over the same configurations allows. Served in time: the highest load under which "+
				"that plan's instances miss the objective of at most 5 % of the queries.",
			"Figure 11: 8 servers have 256 threads, and no measured part has less than 2, so that no plan has more "+
				"than 128 instances. The published OSVT maximum is beyond what the published latencies allow; that "+
				"of Q&A is far below it, and DSSM-2389 was not published.")
		return nil
	})
	return nil
}

// stress finds the capacity of the cluster under a system.
func (run *runner) stress(ctx context.Context, s scenario, system string, seed uint64) (capacity, error) {
	w, err := newEnvironment(s.functions, servers)
	if err != nil {
		return capacity{}, err
	}
	w.Solver = run.Solver
	p, err := newPlanningSystem(w, system)
	if err != nil {
		return capacity{}, err
	}
	p.mix = s.shares
	out := capacity{planned: p.maxPlanned(ctx)}
	if out.planned == 0 {
		return out, nil
	}
	if out.bound, err = p.bound(ctx, out.planned); err != nil {
		return capacity{}, err
	}
	out.inTime, err = p.maxInTime(ctx, out.planned, run.stressQueries, seed)
	return out, err
}

// addScenario11 adds the rows of one scenario and returns its panel. task returns the task of a system.
func addScenario11(o *reproduce.Outcome, s scenario, task func(system string) *reproduce.Task) plot.Panel {
	planned := func(system string) []float64 {
		return reproduce.Each(task(system), func(x capacity) float64 { return x.planned })
	}
	bound := func(system string) []float64 {
		return reproduce.Each(task(system), func(x capacity) float64 { return x.bound })
	}
	inTime := func(system string) []float64 {
		return reproduce.Each(task(system), func(x capacity) float64 { return x.inTime })
	}
	setting := reproduce.Setting("application", s.name, "loads", s.mix)
	plannedLine, boundLine := plot.Line{Name: "planned"}, plot.Line{Name: "bound", Faint: true}
	for _, system := range stressSystems {
		r := row("11", system, "highest load planned", "queries/s", setting)
		if p, ok := published11[s.name][system]; ok {
			r = r.WithPublished(p, "Figure 11, plotting code")
		}
		o.AddRow(r, planned(system)...)
		o.AddRow(row("11", system, "of which a linear program allows", "queries/s", setting), bound(system)...)
		o.AddRow(row("11", system, "served in time", "queries/s", setting), inTime(system)...)
		plannedLine.Y = append(plannedLine.Y, planned(system)[0])
		boundLine.Y = append(boundLine.Y, bound(system)[0])
	}
	for _, system := range []string{"infless", "infless-balanced", "infless-dense", systems.Default} {
		for _, base := range []string{"openfaas+", "batch"} {
			r := row("11", system, "planned over "+base, "", setting)
			if system == "infless" {
				r = r.WithPublished(published11[s.name][system]/published11[s.name][base], "Figure 11, plotting code")
			}
			o.AddRow(r, ratiosOrZero(planned(system), planned(base))...)
			o.AddRow(row("11", system, "served in time over "+base, "", setting),
				ratiosOrZero(inTime(system), inTime(base))...)
		}
	}
	return reproduce.Bars(s.name+", loads "+s.mix+" (queries/s)", stressSystems, plannedLine, boundLine)
}

// ratiosOrZero returns a[i]/b[i], 0 where b[i] is 0.
func ratiosOrZero(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		if b[i] > 0 {
			out[i] = a[i] / b[i]
		}
	}
	return out
}
