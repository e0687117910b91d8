package tidal

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Options tune the planner. The zero value gives the defaults.
type Options struct {
	// LateShare is the share of queries that may be late; 0 means one in ten thousand. Value functions are made for the
	// rates at which it can be kept.
	LateShare float64
	// Rates is the number of rates with a value function, up to the rate that the fastest variant carries; 0 means 64.
	Rates int
	// SingleRate makes a value function for the demand of the request and no other, if it can be served in time: for a
	// load that is known and constant.
	SingleRate bool
}

// maxBatch is the largest batch that is planned for.
const maxBatch = 32

// Planner loads every useful variant on every worker and makes the value functions for choosing among them. It keeps
// the last value functions of every stage. It is not for concurrent use.
type Planner struct {
	Profile profile.Profile
	Options Options
	cache   []cached // by StageID
}

// cached is the value functions of a stage and what they were made for.
type cached struct {
	pool       Pool
	singleRate float64 // the only rate they were made for; 0 for all rates
	values     []plan.ValueFunction
}

// Name implements plan.Planner.
func (p *Planner) Name() string { return "tidal" }

// Provides implements plan.Planner.
func (p *Planner) Provides() plan.Sections { return plan.Shares | plan.Limits | plan.Values }

// Plan implements plan.Planner. It takes 5 to 200 ms per rate, and nothing for rates in the cache, which
// holds those of the latencies believed last. It fails for an app
// of several stages. Where workers have several types, each app gets workers of one.
func (p *Planner) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	x, err := capacity.ReadAlone(p.Name(), "slack", &r, p.Profile, true)
	if err != nil {
		return nil, err
	}
	p.cache = append(p.cache, make([]cached, max(len(r.Spec.Stages)-len(p.cache), 0))...)
	out := r.NewPlan(p.Name())
	err = x.Plan(out, &r, func(s serving.StageID) (plan.Promise, error) {
		values, err := p.stage(ctx, out, x, s)
		if err != nil {
			return plan.Promise{}, err
		}
		out.Values = append(out.Values, *values)
		low, high, part := values.Between(x.Asked[s].Rate)
		return plan.Promise{
			Accuracy:  (1-part)*low.Promise.Accuracy + part*high.Promise.Accuracy,
			Violation: (1-part)*low.Promise.Violation + part*high.Promise.Violation,
		}, nil
	})
	return out, err
}

// stage gives a stage its workers and its value functions. The value functions of a stage with a part of its workers'
// time are those for as much higher rates.
func (p *Planner) stage(ctx context.Context, out *plan.Plan, x *capacity.Alone, s serving.StageID) (
	*plan.ValueFunctions, error) {
	workers, part, a := x.Workers[s], x.TimePart(s), x.Asked[s]
	d := x.Spec.Workers[workers[0]].DeviceType
	pool := Pool{
		Workers: len(workers), SLO: a.Budget, LateShare: p.Options.LateShare,
		Models: models(x.Spec, x.Believed, s, d, a.Budget, x.Memory(s, d), x.Broken),
	}
	if len(pool.Models) == 0 {
		return nil, capacity.Unservable(x.Believed, x.Spec, s, a, []serving.DeviceTypeID{d}, x.Broken)
	}
	if pool.LateShare == 0 {
		pool.LateShare = 1e-4
	}
	rates, err := p.values(ctx, s, pool, a.Rate/part)
	if err != nil {
		return nil, err
	}
	if part < 1 {
		rates = slices.Clone(rates)
		for k := range rates {
			rates[k].Rate *= part
		}
	}
	out.Capacity[a.App] = rates[len(rates)-1].Rate / a.FanOut
	if p.Options.SingleRate {
		out.Capacity[a.App] = part * pool.maxRate() / a.FanOut
	}
	for _, w := range workers {
		i := plan.Instance{Worker: w, Stage: s, Slots: 1, Share: 1 / float64(len(workers))}
		for _, m := range pool.Models {
			i.Variants = append(i.Variants, plan.Variant{Variant: m.Variant, Limit: len(m.Latency)})
		}
		out.Instances = append(out.Instances, i)
	}
	return &plan.ValueFunctions{Stage: s, Workers: len(workers), ByRate: rates}, nil
}

// values returns the value functions of a stage's pool, from the cache where it has them.
func (p *Planner) values(ctx context.Context, s serving.StageID, pool Pool, asked float64) ([]plan.ValueFunction,
	error) {
	m := &p.cache[s]
	alone := 0.0
	if p.Options.SingleRate {
		alone = asked
	}
	if len(m.values) > 0 && m.singleRate == alone && m.pool.same(&pool) {
		return m.values, nil
	}
	*m = cached{pool: pool, singleRate: alone}
	steps := p.Options.Rates
	if steps <= 0 {
		steps = 64
	}
	if p.Options.SingleRate {
		pool.Rate = asked
		if x, kept := pool.Solve(nil); kept {
			m.values = []plan.ValueFunction{*x}
			return m.values, nil
		}
	}
	carries := pool.maxRate()
	for k := 1; k <= steps; k++ {
		if err := ctx.Err(); err != nil {
			*m = cached{}
			return nil, err
		}
		pool.Rate = carries * float64(k) / float64(steps)
		var near *plan.ValueFunction
		if n := len(m.values); n > 0 {
			near = &m.values[n-1]
		}
		x, kept := pool.Solve(near)
		if !kept && len(m.values) > 0 {
			break
		}
		m.values = append(m.values, *x)
	}
	return m.values, nil
}

// models returns the useful variants of a stage on a device type, fastest first, each with the latencies of its useful
// batches. A variant is useful if it is known, above the accuracy floor, and has a batch in time that no other beats in
// size, speed and accuracy. Variants that do not fit the memory together are left out by capacity.FitMemory. The
// fastest variant keeps batches that are never in time, for queries that are late already.
func models(spec *serving.Spec, believed profile.Profile, s serving.StageID, d serving.DeviceTypeID,
	within time.Duration, memory int64, broken []bool) []Model {
	var all []Model
	for _, v := range spec.Stages[s].Variants {
		x := &spec.Variants[v]
		if broken[v] || spec.BelowFloor(v) {
			continue
		}
		m := Model{v, x.Accuracy, capacity.Latencies(believed, v, d, min(x.MaxBatch, maxBatch))}
		if len(m.Latency) > 0 && m.Latency[0] <= within {
			all = append(all, m)
		}
	}
	used := func() map[serving.VariantID]bool {
		out := make(map[serving.VariantID]bool)
		for _, a := range (&Pool{SLO: within, Models: all}).actions() {
			out[a.variant] = true
		}
		return out
	}
	of := used()
	all = slices.DeleteFunc(all, func(m Model) bool { return !of[m.Variant] })
	slices.SortFunc(all, func(a, b Model) int { return int(a.Latency[0] - b.Latency[0]) })
	all = capacity.FitMemory(spec, memory, all, func(m *Model) serving.VariantID { return m.Variant })
	for i := range all {
		if m := &all[i]; i > 0 {
			n := len(m.Latency)
			for m.Latency[n-1] > within {
				n--
			}
			m.Latency = m.Latency[:n]
		}
	}
	return all
}
