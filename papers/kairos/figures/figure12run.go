package kairos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
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
	// allocation is how long machines take from the request for a plan on: tens of seconds (§5.2).
	allocation = 30 * time.Second
	// changeLoad is the load as a part of what both pools carry, the one before and the one after.
	changeLoad = 0.9
)

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
func (run *runner) throughChange(x sizeChange, follows bool) reproduce.Runs[*changeRun] {
	return reproduce.Add(run.Runner, fmt.Sprintf("rm2, %v, plans follow %v", x, follows),
		20*run.coarse.queries, run.Seeds, func(ctx context.Context, seed uint64) (*changeRun, error) {
			return run.change(ctx, x, follows, seed)
		})
}

func (run *runner) change(ctx context.Context, x sizeChange, follows bool, seed uint64) (*changeRun, error) {
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
	c, err := s.changing(x.to, out.rate)
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

// changing returns the case of kairos at a rate, in queries/s, whose sizes become others.
func (s *deployment) changing(to sizes, rate float64) (*experiment.Case, error) {
	spec := s.affordable(budget)
	spec.DeviceTypes = slices.Clone(spec.DeviceTypes)
	for d := range spec.DeviceTypes {
		spec.DeviceTypes[d].Tenure = serving.Rented
	}
	mix, err := to.mix()
	if err != nil {
		return nil, err
	}
	var drawn []workload.Sizes
	for _, m := range []serving.Mix{spec.Apps[0].Mix, mix} {
		x, err := workload.FromMix(m)
		if err != nil {
			return nil, err
		}
		drawn = append(drawn, x)
	}
	at := changeAt.Seconds()
	phases := [][]workload.Point{{{Rate: rate}, {At: at}}, {{}, {At: at, Rate: rate}}}
	var rates []*workload.Rate
	for _, p := range phases {
		x, err := workload.NewRate(p, false)
		if err != nil {
			return nil, err
		}
		rates = append(rates, x)
	}
	system := reproduce.System(kairosRule)
	system.Options.Renting.Budget = budget
	return &experiment.Case{
		Env: &experiment.Environment{
			Spec: spec, Beliefs: s.beliefs,
			Apps:  []report.AppInfo{{Name: s.model, BestAccuracy: 1, SLO: spec.Apps[0].SLO}},
			Truth: func(r *rand.Rand) (truth.Model, error) { return s.truth.WithRand(r), nil },
		},
		System: system, Span: changeSpan, FirstRates: []float64{rate}, PlanDelay: allocation,
		Source: func(seed uint64) workload.Source {
			return workload.Limit(workload.Merge(
				poisson.source(rates[0], drawn[0], 2*seed), poisson.source(rates[1], drawn[1], 2*seed+1),
			), serving.Time(changeSpan), 1<<40)
		},
	}, nil
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
	share := func(from, to time.Duration) float64 {
		late, all := int64(0), int64(0)
		for _, b := range r.Report.Series {
			if b.AtS >= from.Seconds() && b.AtS < to.Seconds() {
				late += b.Violations()
				all += b.Served + b.Dropped + b.Refused + b.Failed
			}
		}
		return 100 * float64(late) / float64(max(all, 1))
	}
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
		for _, follows := range []bool{true, false} {
			name := kairosRule
			if !follows {
				name += ", its first pool"
			}
			x, at := run.throughChange(change, follows), f.At("model", "rm2", "sizes", change)
			at.Row(name, "load", "queries/s", x.Each(func(r *changeRun) float64 { return r.rate }))
			for k, what := range []string{"before the change", "in the minute after", "in the last two minutes"} {
				at.Row(name, "late "+what, "%", x.Each(func(r *changeRun) float64 { return r.late[k] }))
			}
			if follows {
				at.Row(name, "until the next plan serves", "s",
					x.Each(func(r *changeRun) float64 { return r.planned.Seconds() }))
				at.Row(name, "plans since", "", x.Each(func(r *changeRun) float64 { return float64(r.plans) })).
					Published(1, "§8.4: one shot")
				f.Report(func(o *reproduce.Outcome) error {
					r := x.First()
					o.Notes = append(o.Notes, fmt.Sprintf("Sizes %v, first seed: pool %v, then %v.", change, r.before,
						r.after))
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
