package infless

import (
	"context"
	"math"

	"github.com/sluice-serving/sluice/measure/workload"
	planner "github.com/sluice-serving/sluice/planner/infless"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/systems"
)

// packing is a system that plans for a world.
type packing struct {
	world   *experiment.World
	system  systems.System
	planner plan.Planner
	mix     []float64 // shares of the load by function, in any unit; nil for equal ones
}

func newPacking(w *experiment.World, name string) (*packing, error) {
	s, err := systems.Get(name)
	if err != nil {
		return nil, err
	}
	p, err := s.NewPlanner(w.Known())
	return &packing{world: w, system: s, planner: p}, err
}

// spread shares a rate out among the functions.
func (p *packing) spread(total float64) []float64 {
	out, sum := make([]float64, len(p.world.Spec.Apps)), 0.0
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

// plan plans from nothing; ok is false where some of the load is left out, or nothing can be served.
func (p *packing) plan(ctx context.Context, rates []float64) (out *plan.Plan, ok bool) {
	out, err := p.planner.Plan(ctx, plan.Request{Spec: p.world.Spec, Rates: rates})
	return out, err == nil && out.Shed == nil
}

// most returns the highest rate, of all functions together, that the cluster is planned to carry. A greedy plan may
// fail for one rate and not for a higher one, so the rates above the first that fails are tried, too, a fifth beyond in
// steps of one in a hundred.
func (p *packing) most(ctx context.Context) float64 {
	low, high := 0.0, 1.0
	carries := func(rate float64) bool {
		_, ok := p.plan(ctx, p.spread(rate))
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
	most := low
	for rate := low; rate < 1.2*low; rate *= 1.01 {
		if carries(rate) {
			most = max(most, rate)
		}
	}
	return most
}

// bound is what a linear program allows of a rate of all functions together. What BATCH configures depends on the rate,
// so that it is asked at about the rate that it answers.
func (p *packing) bound(ctx context.Context, at float64) (float64, error) {
	x, err := p.planner.(*planner.Planner).CapacityBound(ctx, p.world.Solver,
		plan.Request{Spec: p.world.Spec, Rates: p.spread(at)})
	return x * at, err
}

const (
	// outside is the share of the queries that may miss their objective under stress (§5.2 reports 3.1 % on average).
	outside = 0.05
	giveUp  = 0.3
)

// inTime returns the highest rate, of all functions together, that is served in time by the instances of the plan for
// the highest rate: queries come as a Poisson process, nothing is planned again.
func (p *packing) inTime(ctx context.Context, planned float64, seed uint64) (float64, error) {
	initial, ok := p.plan(ctx, p.spread(planned))
	if !ok {
		return 0, nil
	}
	fixed := p.system
	fixed.Scaler = "fixed"
	// For ten times the longest objective, and enough queries for a share of a few in a hundred.
	queries := max(8000, int(planned*2))
	probe := experiment.Violating(func(rate float64) *experiment.Case {
		return &experiment.Case{World: p.world, System: fixed, Initial: initial,
			Source: func(seed uint64) workload.Source {
				return &shuffled{App: workload.App{
					Times: workload.NewProcess(workload.Constant(rate), workload.Poisson{},
						workload.Stream(seed, "arrivals")),
					Template: workload.Arrival{Variant: serving.None, Sample: -1, Items: 1},
				}, draw: workload.Stream(seed, "apps").Float64, shares: p.spread(1)}
			}}
	}, min(queries, 60000), giveUp)
	a, err := experiment.Allowable(ctx, probe, experiment.Allowing{
		Limit: outside, Start: 0.9 * planned, Resolution: 0.02, Runs: 2, Rough: true, Seed: 1000 * seed,
	})
	return a.Rate, err
}

// shuffled sends every query to one of the apps, by their shares.
type shuffled struct {
	workload.App
	draw   func() float64
	shares []float64
}

// Next implements workload.Source.
func (s *shuffled) Next() (workload.Arrival, bool) {
	a, ok := s.App.Next()
	x := s.draw()
	for int(a.App) < len(s.shares)-1 && x >= s.shares[a.App] {
		x -= s.shares[a.App]
		a.App++
	}
	return a, ok
}

// taken is what a plan takes of machines, by the weights of the paper: a thread counts 64/142 of a per cent of an
// accelerator. active is how many servers it uses, fragments the part of them that is left over.
func (p *packing) taken(out *plan.Plan) (resources, fragments, active float64) {
	spec := p.world.Spec
	used := make([]float64, len(spec.Workers))
	for _, i := range out.Instances {
		d := &spec.DeviceTypes[i.Part-1]
		r := weigh(d.Cores, d.Percent)
		resources += r
		if used[i.Worker] == 0 {
			active++
		}
		used[i.Worker] += r
	}
	for w, r := range used {
		if r > 0 {
			d := &spec.DeviceTypes[spec.Workers[w].DeviceType]
			fragments += (1 - r/weigh(d.Cores, 100*d.Accelerators)) / active
		}
	}
	return resources, fragments, active
}

func weigh(threads, percent int) float64 { return 64.0/142*float64(threads) + float64(percent) }

// instances returns a plan with about so many instances, of loads in the given proportion.
func (p *packing) instances(ctx context.Context, n int, shares []float64) (out *plan.Plan, rates []float64) {
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
