package kairos

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
)

// sizeChange is a change of sizes in a run: the first until changeAt, the others from then on.
type sizeChange struct{ from, to sizes }

func (c sizeChange) String() string { return fmt.Sprintf("%v, then %v", c.from, c.to) }

// sizeChanges are the paper's change, with two distributions that may be meant, and the same back.
var sizeChanges = []sizeChange{
	{production, gaussian}, {production, deepRecSys}, {gaussian, production}, {deepRecSys, production},
}

const (
	changeWarm = 30 * time.Second
	changeAt   = 120 * time.Second
	changeSpan = 360 * time.Second
	// changeLoad is the load as a part of what both pools carry, the one before and the one after.
	changeLoad = 0.9
)

// firstPool is kairos without plans after the first.
const firstPool = kairosRule + ", its first pool"

// changeRun is what came of a run.
type changeRun struct {
	rate          float64       // queries/s
	before, after pool          // the first one and the last one
	planned       time.Duration // from the change until the first plan after it is in force; changeSpan where none is
	plans         int           // after the change
	late          [3]float64    // per cent: before the change, in the minute after it, in the last two minutes
	bySecond      []float64     // late queries, in per cent
}

// throughChange adds a run of kairos, with pools as it plans them or with the first one all the time.
func (run *runner) throughChange(x sizeChange, system string, follows bool) reproduce.Runs[*changeRun] {
	return reproduce.Add(run.Runner, fmt.Sprintf("%s, rm2, %v, plans follow %v", system, x, follows),
		20*run.coarse.queries, run.Seeds, func(ctx context.Context, seed uint64) (*changeRun, error) {
			return run.change(ctx, x, system, follows, seed)
		})
}

func (run *runner) change(ctx context.Context, x sizeChange, system string, follows bool, seed uint64) (*changeRun,
	error) {
	s, err := run.deployment(setup{model: "rm2", sizes: x.from, qos: 1})
	if err != nil {
		return nil, err
	}
	out := &changeRun{}
	for _, sz := range []sizes{x.from, x.to} {
		at, err := run.deployment(setup{model: "rm2", sizes: sz, qos: 1})
		if err != nil {
			return nil, err
		}
		p, err := at.chosenPool(budget)
		if err != nil {
			return nil, err
		}
		got, err := run.measure(ctx, trial{setup: at.setup, pool: p, system: kairosRule, arrivals: poisson}, run.coarse,
			seed)
		if err != nil {
			return nil, err
		}
		if most := changeLoad * got.Rate; out.rate == 0 || most < out.rate {
			out.rate = most
		}
	}
	c, err := s.changing(system, x.to, out.rate)
	if err != nil {
		return nil, err
	}
	if !follows {
		c.Scaler = scale.Fixed{}
	}
	r, err := c.Run(ctx, seed)
	if err != nil {
		return nil, err
	}
	out.read(c.Env.Spec, r)
	return out, nil
}

// changing returns the case of a system at a rate, in queries/s, whose sizes become others.
func (s *deployment) changing(system string, to sizes, rate float64) (*experiment.Case, error) {
	mix, err := to.mix()
	if err != nil {
		return nil, err
	}
	return s.renting(system, changeSpan, rate, []phase{{s.spec.Apps[0].Mix, 0}, {mix, changeAt}})
}

// read takes what counts from a run.
func (x *changeRun) read(spec *serving.Spec, r *experiment.Run) {
	x.before, x.after = poolOf(spec, r.Plans[0].Plan), poolOf(spec, r.Plans[len(r.Plans)-1].Plan)
	x.planned = changeSpan
	for _, p := range r.Plans {
		if since := p.At.Sub(0) - changeAt; since > 0 {
			x.planned = min(x.planned, since+allocation)
			x.plans++
		}
	}
	share := func(from, to time.Duration) float64 { return lateShare(r.Report, from, to) }
	x.late = [3]float64{
		share(changeWarm, changeAt), share(changeAt, changeAt+time.Minute), share(changeSpan-2*time.Minute, changeSpan),
	}
	for k := range int(changeSpan / time.Second) {
		x.bySecond = append(x.bySecond, share(time.Duration(k)*time.Second, time.Duration(k+1)*time.Second))
	}
}

// figure12Run is one run through the change that Figure 12 is about.
func figure12Run(run *runner, f *reproduce.Sheet) error {
	c := f.Chart("12R", "Kairos, Figure 12 as one run: RM2 while the sizes of queries change", 2)
	for _, change := range sizeChanges {
		p := c.Panel("late queries (%), "+change.String(), "time (s)", 0, reproduce.Auto)
		for _, name := range []string{kairosRule, exploringRule, firstPool} {
			system, follows := name, name != firstPool
			if !follows {
				system = kairosRule
			}
			x, at := run.throughChange(change, system, follows), f.At("model", "rm2", "sizes", change)
			at.Row(name, "load", "queries/s", x.Each(func(r *changeRun) float64 { return r.rate }))
			for k, what := range []string{"before the change", "in the minute after", "in the last two minutes"} {
				at.Row(name, "late "+what, "%", x.Each(func(r *changeRun) float64 { return r.late[k] }))
			}
			if follows {
				at.Row(name, "until the next plan serves", "s",
					x.Each(func(r *changeRun) float64 { return r.planned.Seconds() }))
				plans := at.Row(name, "plans since", "", x.Each(func(r *changeRun) float64 { return float64(r.plans) }))
				if name == kairosRule {
					plans.Published(1, "§8.4: one shot")
				}
				f.Report(func(o *reproduce.Outcome) error {
					r := x.First()
					o.Notes = append(o.Notes, fmt.Sprintf("Sizes %v, %s, first seed: pool %v, then %v.", change, name,
						r.before, r.after))
					return nil
				})
			}
			p.Curve(name, func() (at, late []float64) {
				for k, y := range x.First().bySecond {
					at, late = append(at, float64(k)), append(late, y)
				}
				return at, late
			})
		}
	}
	f.Note("Figure 12 as one run: after two minutes the sizes change, at 0.9 of what the pools carry that are " +
		"chosen for either. A pool is there 30 s after it was asked for.")
	return nil
}
