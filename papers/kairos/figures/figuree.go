package kairos

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

const (
	// exploreSpan is how long a run of Figures E and L is. Its last third shows what came of it.
	exploreSpan = 15 * time.Minute
	exploreStep = 10 * time.Second
)

// exploreLoads are loads as parts of what the pool carries that Kairos chooses.
var exploreLoads = []float64{0.9, drawnLoad, 1.2}

// drawnLoad is the load that the chart of Figure E has.
const drawnLoad = 1.05

// exploredModels are those of Figure E: RM2, as in Figure 12, and the one of which the rule of similarity takes a pool
// that carries less than others.
var exploredModels = []string{"rm2", "mtwnd"}

// exploreSizes are the sizes of queries that Figure E draws.
var exploreSizes = []sizes{production, gaussian}

// exploreRun is what came of serving while pools are tried.
type exploreRun struct {
	rate         float64 // queries/s
	first, last  pool
	pools        int     // different ones, the first included
	settled      float64 // s, from when on the last pool serves
	late, ending float64 // per cent, of all the time and of the last minutes
	missing      float64 // per cent of the steps in which more is late than the objective allows
	byStep       []float64
}

// exploring adds runs of a system at a load, a part of what Kairos's pool carries. fresh has it know no latency.
func (run *runner) exploring(system string, at setup, load float64, fresh bool) reproduce.Runs[*exploreRun] {
	return reproduce.Add(run.Runner, fmt.Sprintf("%s while it serves, %v at %v, fresh %v", system, at, load, fresh),
		100*run.coarse.queries, run.Seeds, func(ctx context.Context, seed uint64) (*exploreRun, error) {
			s, err := run.deployment(at)
			if err != nil {
				return nil, err
			}
			p, err := s.chosenPool(budget)
			if err != nil {
				return nil, err
			}
			carries, err := run.measure(ctx, trial{setup: at, pool: p, system: kairosRule, arrivals: poisson},
				run.chosen, seed)
			if err != nil {
				return nil, err
			}
			return s.serve(ctx, system, run.exploreSpan, load*carries.Rate, seed, fresh)
		})
}

// serve runs a system at a rate, in queries/s. fresh has it know no latency.
func (s *deployment) serve(ctx context.Context, system string, span time.Duration, rate float64, seed uint64,
	fresh bool) (*exploreRun, error) {
	c, err := s.renting(system, span, rate, []phase{{s.spec.Apps[0].Mix, 0}})
	if err != nil {
		return nil, err
	}
	if fresh {
		c.Env.Beliefs = nil
	}
	r, err := c.Run(ctx, seed)
	if err != nil {
		return nil, err
	}
	out := &exploreRun{
		rate: rate, late: lateShare(r.Report, 0, span), ending: lateShare(r.Report, span-span/3, span),
	}
	seen := map[pool]bool{}
	for k, p := range r.Plans {
		was := out.last
		if out.last = poolOf(c.Env.Spec, p.Plan); k > 0 && out.last != was {
			out.settled = (p.At.Sub(0) + allocation).Seconds()
		}
		seen[out.last] = true
	}
	out.first, out.pools = poolOf(c.Env.Spec, r.Plans[0].Plan), len(seen)
	for at := time.Duration(0); at < span; at += exploreStep {
		late := lateShare(r.Report, at, at+exploreStep)
		if out.byStep = append(out.byStep, late); late > 100*violationLimit {
			out.missing += 100 / float64(span/exploreStep)
		}
	}
	return out, nil
}

// curve is the share of late queries, in per cent, by time in seconds.
func (r *exploreRun) curve() (at, late []float64) {
	for k, y := range r.byStep {
		at, late = append(at, float64(k)*exploreStep.Seconds()), append(late, y)
	}
	return at, late
}

// figureE is KAIROS+ online (§5.2, Algorithm 1), beside Kairos, which rents one pool. The paper evaluates pools by
// raising the load on each; here a pool is evaluated by serving what comes.
func figureE(run *runner, f *reproduce.Sheet) error {
	chart := f.Chart("E", "Kairos and KAIROS+ while they serve, at 1.05 of what the pool of Kairos carries", 2)
	for _, model := range exploredModels {
		for _, z := range exploreSizes {
			p := chart.Panel(fmt.Sprintf("late queries (%%), %s, %v", model, z), "time (s)", 0, reproduce.Auto)
			for _, load := range exploreLoads {
				run.exploreAt(f, p, setup{model: model, sizes: z, qos: 1}, load)
			}
		}
	}
	f.Note("A quarter of an hour with Poisson arrivals, at parts of what the pool carries that kairos chooses. A " +
		"pool is there 30 s after it was asked for.")
	return nil
}

// exploreAt adds the rows of a model at a load, and its curves in p where they are drawn.
func (run *runner) exploreAt(f *reproduce.Sheet, p *reproduce.Panel, x setup, load float64) {
	at := f.At("model", x.model, "sizes", x.sizes, "load", load)
	for _, system := range []string{kairosRule, exploringRule} {
		r := run.exploring(system, x, load, false)
		at.Row(system, "load", "queries/s", r.Each(func(r *exploreRun) float64 { return r.rate }))
		addLate(at, system, r)
		at.Row(system, "tens of seconds that miss the objective", "%",
			r.Each(func(r *exploreRun) float64 { return r.missing }))
		at.Row(system, "pools", "", r.Each(func(r *exploreRun) float64 { return float64(r.pools) }))
		if load == drawnLoad {
			p.Curve(system, func() (at, late []float64) { return r.First().curve() })
		}
		if system != exploringRule {
			continue
		}
		f.Report(func(o *reproduce.Outcome) error {
			if r := r.First(); r.pools > 1 {
				o.Notes = append(o.Notes, fmt.Sprintf("%s, sizes %v, load %v, first seed: pool %v, then %d others, at "+
					"last %v.", x.model, x.sizes, load, r.first, r.pools-1, r.last))
			}
			return nil
		})
	}
}

// addLate adds the share of late queries, of all the time and of the last minutes.
func addLate(at reproduce.Place, name string, x reproduce.Runs[*exploreRun]) {
	at.Row(name, "late", "%", x.Each(func(r *exploreRun) float64 { return r.late }))
	at.Row(name, "late in the last five minutes", "%", x.Each(func(r *exploreRun) float64 { return r.ending }))
}
