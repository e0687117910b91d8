package infless

import (
	"context"

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

// capacities are the quantities of Figure 11.
var capacities = []reproduce.Quantity[capacity]{
	{Name: "highest load planned", Unit: "queries/s", Of: planned},
	{Name: allowedRow, Unit: "queries/s", Of: func(x capacity) float64 { return x.bound }},
	{Name: "served in time", Unit: "queries/s", Of: inTime},
}

func planned(x capacity) float64 { return x.planned }
func inTime(x capacity) float64  { return x.inTime }

// figure11 finds the highest constant load that the cluster carries.
func figure11(run *runner, f *reproduce.Sheet) error {
	const source = "Figure 11, plotting code"
	c := f.Chart("11", title("11: the highest load that 8 servers carry"), 1)
	for _, s := range scenarios {
		at, published := f.At("application", s.name, "loads", s.mix), published11[s.name]
		panel := c.Bars(s.name + ", loads " + s.mix + " (queries/s)")
		of := make(map[string]reproduce.Runs[capacity])
		for _, system := range stressSystems {
			r := reproduce.Add(run.Runner, "stress of "+s.name+", "+s.mix+", by "+system, 10, run.Seeds,
				func(ctx context.Context, seed uint64) (capacity, error) { return run.stress(ctx, s, system, seed) })
			of[system] = r
			reproduce.AddRows(at, system, r, capacities)["highest load planned"].
				Published(reproduce.In(published, system), source)
			panel.Bar("planned", system, r.Each(planned).First())
			panel.Bar("bound", system, r.Each(capacities[1].Of).First())
		}
		panel.Faint("bound")
		for _, system := range []string{"infless", "infless-balanced", "infless-dense", systems.Default} {
			for _, base := range []string{"openfaas+", "batch"} {
				e := at.Row(system, "planned over "+base, "", over(of[system].Each(planned), of[base].Each(planned)))
				if system == "infless" {
					e.Published(published[system]/published[base], source)
				}
				at.Row(system, "served in time over "+base, "", over(of[system].Each(inTime), of[base].Each(inTime)))
			}
		}
	}
	f.Note("Figure 11: rates are of all functions together; they have the same load, or for OSVT that of the "+
		"authors' stress run. Planned: the highest load for which a plan leaves nothing out. Allowed: what a "+
		"linear program over the same configurations allows. Served in time: the highest load under which "+
		"that plan's instances miss the objective of at most 5 % of the queries.",
		"Figure 11: 8 servers have 256 threads, and no measured part has less than 2, so that no plan has more "+
			"than 128 instances. The published OSVT maximum is beyond what the published latencies allow; that "+
			"of Q&A is far below it, and DSSM-2389 was not published.")
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
