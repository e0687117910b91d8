package infless

import (
	"context"
	"math"

	"github.com/sluice-serving/sluice/internal/planner/packing"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	planner "github.com/sluice-serving/sluice/papers/infless"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/workload"
)

// planningSystem is a system that plans for an environment.
type planningSystem struct {
	env     *experiment.Environment
	system  systems.System
	planner plan.Planner
	mix     []float64 // load of each function, in any unit; nil for equal loads
}

func newPlanningSystem(w *experiment.Environment, name string) (*planningSystem, error) {
	s, err := systems.Get(name)
	if err != nil {
		return nil, err
	}
	p, err := s.NewPlanner(w.Known())
	return &planningSystem{env: w, system: s, planner: p}, err
}

// split divides a rate among the functions.
func (p *planningSystem) split(total float64) []float64 {
	out, sum := make([]float64, len(p.env.Spec.Apps)), 0.0
	for a := range out {
		if out[a] = 1; p.mix != nil {
			out[a] = p.mix[a]
		}
		sum += out[a]
	}
	for a := range out {
		out[a] *= total / sum
	}
	return out
}

// plan plans from nothing. ok is false when some load is shed or the planner fails.
func (p *planningSystem) plan(ctx context.Context, rates []float64) (out *plan.Plan, ok bool) {
	out, err := p.planner.Plan(ctx, plan.Request{Spec: p.env.Spec, Rates: rates})
	return out, err == nil && out.Shed == nil
}

// maxPlanned returns the highest rate, over all functions together, that a plan carries completely. A greedy plan may
// fail at one rate and succeed at a higher one. So rates up to a fifth above the first failure are tried too, in steps
// of 1 %.
func (p *planningSystem) maxPlanned(ctx context.Context) float64 {
	low, high := 0.0, 1.0
	carries := func(rate float64) bool {
		_, ok := p.plan(ctx, p.split(rate))
		return ok
	}
	for carries(high) {
		low, high = high, 2*high
	}
	for high-low > max(0.002*high, 0.1) {
		if middle := (low + high) / 2; carries(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	highest := low
	for rate := low; rate < 1.2*low; rate *= 1.01 {
		if carries(rate) {
			highest = max(highest, rate)
		}
	}
	return highest
}

// bound returns the rate that a linear program allows, over all functions together. The configurations of BATCH depend
// on the rate, so the program gets those for the rate at.
func (p *planningSystem) bound(ctx context.Context, at float64) (float64, error) {
	limits, ok := p.planner.(*packing.Planner)
	if !ok { // the default system packs by exact rates
		limits = &packing.Planner{Profile: p.env.Beliefs, Options: packing.Options{Exact: true}}
	}
	x, err := planner.CapacityBound(ctx, limits, p.env.Solver, plan.Request{Spec: p.env.Spec, Rates: p.split(at)})
	return x * at, err
}

const (
	// violationLimit is the share of the queries that may miss their objective under stress (§5.2 reports 3.1 % on
	// average).
	violationLimit = 0.05
	giveUpShare    = 0.3
)

// maxInTime returns the highest rate, over all functions together, that the instances of the plan for the rate planned
// serve in time. Queries are a Poisson process, at most mostQueries in a run, and there is no further planning.
func (p *planningSystem) maxInTime(ctx context.Context, planned float64, mostQueries int, seed uint64) (float64,
	error) {
	initial, ok := p.plan(ctx, p.split(planned))
	if !ok {
		return 0, nil
	}
	fixed := p.system
	fixed.Scaler = "fixed"
	// Long enough for ten times the longest objective, and for a share of a few per cent to be measured.
	queries := max(8000, int(planned*2))
	probe := experiment.ViolationProbe(func(rate *workload.Rate) *experiment.Case {
		return &experiment.Case{Env: p.env, System: fixed, Initial: initial,
			Source: func(seed uint64) workload.Source {
				return &mixedApps{App: workload.App{
					Times:    workload.NewProcess(rate, workload.Poisson{}, workload.Rand(seed, "arrivals")),
					Template: reproduce.Query(0),
				}, draw: workload.Rand(seed, "apps").Float64, shares: p.split(1)}
			}}
	}, min(queries, mostQueries), giveUpShare)
	a, err := experiment.FindThroughput(ctx, probe, experiment.ThroughputSearch{
		Limit: violationLimit, Start: 0.9 * planned, Resolution: 0.02, Runs: 2, NoBounds: true, Seed: 1000 * seed,
	})
	return a.Rate, err
}

// mixedApps is a source that sends every query to a random app, with the given shares.
type mixedApps struct {
	workload.App
	draw   func() float64
	shares []float64
}

// Next implements workload.Source.
func (s *mixedApps) Next() (workload.Arrival, bool) {
	a, ok := s.App.Next()
	x := s.draw()
	for int(a.App) < len(s.shares)-1 && x >= s.shares[a.App] {
		x -= s.shares[a.App]
		a.App++
	}
	return a, ok
}

// resources returns what a plan takes of machines, by the weights of the paper: a thread counts as 64/142 of a per cent
// of an accelerator. active is the number of servers that it uses, unused the mean share of them that is left over.
func (p *planningSystem) resources(out *plan.Plan) (resources, unused, active float64) {
	spec := p.env.Spec
	used := make([]float64, len(spec.Workers))
	for _, i := range out.Instances {
		d := &spec.DeviceTypes[i.Part-1]
		r := resourceWeight(d.Cores, d.Percent)
		resources += r
		if used[i.Worker] == 0 {
			active++
		}
		used[i.Worker] += r
	}
	for w, r := range used {
		if r > 0 {
			d := &spec.DeviceTypes[spec.Workers[w].DeviceType]
			unused += (1 - r/resourceWeight(d.Cores, 100*d.Accelerators)) / active
		}
	}
	return resources, unused, active
}

func resourceWeight(threads, percent int) float64 {
	return 64.0/142*float64(threads) + float64(percent)
}

// planInstances returns a plan with about n instances, for loads in proportion to shares, and these loads.
func (p *planningSystem) planInstances(ctx context.Context, n int, shares []float64) (out *plan.Plan, rates []float64) {
	low, high := 0.0, math.Inf(1)
	rates = make([]float64, len(shares))
	for load := 1.0; ; {
		for a, s := range shares {
			rates[a] = load * s
		}
		x, ok := p.plan(ctx, rates)
		if x != nil {
			out = x
		}
		if ok && len(x.Instances) < n {
			low = load
		} else {
			high = load
		}
		switch {
		case ok && math.Abs(float64(len(x.Instances)-n)) <= 0.02*float64(n), high-low < 1e-4*high:
			return out, rates
		case math.IsInf(high, 1):
			load *= 2
		default:
			load = (low + high) / 2
		}
	}
}
