// Package loadadaptive holds the planners that decide by the load alone (load-granular selection, RAMSIS §2.2). Each
// arrival rate has one variant and one batch limit. The length of the queue and the time left do not matter. All
// variants are loaded on every worker, so that a change of the load changes the variant at once. Each rule has a file.
package loadadaptive

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Rule chooses by the arrival rate.
type Rule interface {
	// Name returns the registry name of the planner with this rule.
	Name() string
	// rates returns the arrival rates, in queries/s and in any order, that choices are made for unless Options name
	// some.
	rates(s *stage) []float64
	// choose returns the choice for one rate, in queries/s.
	choose(s *stage, rate float64) choice
}

// Options tune a planner.
type Options struct {
	// Rates are the arrival rates, in queries/s, that policies are made for; nil takes the rule's own.
	Rates []float64
	// SingleRate makes a policy for the demand of the request and no other: for a load that is known and constant.
	SingleRate bool
}

// Planner makes plans by a rule. They do not depend on the demand: the policy in force follows the load while the plan
// stays. It keeps nothing between plans.
type Planner struct {
	Profile profile.Profile
	Rule    Rule
	Options Options
}

// Name implements plan.Planner.
func (p *Planner) Name() string { return p.Rule.Name() }

// Provides implements plan.Planner. The batch limits are the variants' own; the policy says what a batch may hold.
func (p *Planner) Provides() plan.Sections { return plan.Shares | plan.Limits | plan.Tables }

// Plan implements plan.Planner. It fails for an app of several stages, and when the variants of a stage do not fit a
// worker together.
func (p *Planner) Plan(_ context.Context, r plan.Request) (*plan.Plan, error) {
	out := r.NewPlan(p.Name())
	out.Capacity = make([]float64, len(r.Spec.Apps))
	x, stages, err := p.stages(&r)
	if err != nil {
		return nil, err
	}
	var carried, accuracy float64
	for _, s := range stages {
		if err := s.loadAll(out); err != nil {
			return nil, err
		}
		chosen, err := p.policies(s)
		if err != nil {
			return nil, fmt.Errorf("stage %q: %w", s.spec.Stages[s.id].Name, err)
		}
		out.Policies = append(out.Policies, chosen...)
		last := chosen[0].ByRate[len(chosen[0].ByRate)-1].Rate
		out.Capacity[r.Spec.Stages[s.id].App] = last
		carried += last
		accuracy += last * chosen[0].At(s.demand).Promise.Accuracy
	}
	for _, c := range out.Capacity {
		out.Forecast.Throughput += c
	}
	if carried > 0 {
		out.Forecast.Accuracy = accuracy / carried
	}
	return out, x.Finish(out, &r)
}

// choice is a variant and its batch limits.
type choice struct {
	variant int   // index into stage.variants
	limits  []int // by group
	promise plan.Promise
}

func (c *choice) equal(o *choice) bool {
	return c.variant == o.variant && slices.Equal(c.limits, o.limits)
}

// policies asks the rule for every rate. A stage with a part of its workers' time follows what the rule chooses for as
// much higher rates. Neighbouring rates with the same choice share one policy, for the higher rate.
func (p *Planner) policies(s *stage) ([]plan.Policies, error) {
	rates := p.Options.Rates
	switch {
	case p.Options.SingleRate:
		rates = []float64{s.demand / s.part}
	case rates == nil:
		rates = p.Rule.rates(s)
	}
	rates = slices.Clone(rates)
	slices.Sort(rates)
	rates = slices.Compact(rates)
	out := make([]plan.Policies, len(s.groups))
	for g := range s.groups {
		out[g] = plan.Policies{Stage: s.id, DeviceType: s.groups[g].device}
	}
	var last choice
	for n, rate := range rates {
		if !(rate > 0) || math.IsInf(rate, 0) {
			return nil, fmt.Errorf("a policy for %v queries/s was asked for, want a finite rate above 0", rate)
		}
		c := p.Rule.choose(s, rate)
		for g := range out {
			by := &out[g].ByRate
			if n > 0 && c.equal(&last) {
				*by = (*by)[:len(*by)-1]
			}
			*by = append(*by, s.policy(rate*s.part, c, g))
		}
		last = c
	}
	if len(out) == 0 || len(out[0].ByRate) == 0 {
		return nil, fmt.Errorf("no arrival rate to make a policy for")
	}
	return out, nil
}

// policy writes a choice as a table over the length of the queue: a batch takes all queries that wait, up to the limit.
// Slack makes no difference.
func (s *stage) policy(rate float64, c choice, g int) plan.Policy {
	out := plan.Policy{Rate: rate, Slacks: oneSlack, Promise: c.promise}
	for n := range c.limits[g] {
		out.Choices = append(out.Choices, plan.Choice{Variant: s.variants[c.variant].id, Queries: int32(n + 1)})
	}
	return out
}

// stages makes the input of the rules, by StageID.
func (p *Planner) stages(r *plan.Request) (*capacity.Alone, []*stage, error) {
	x, err := capacity.ReadAlone(p.Name(), "response", r, p.Profile, false)
	if err != nil {
		return nil, nil, err
	}
	var out []*stage
	for id, asked := range x.Asked {
		s := &stage{
			spec: r.Spec, id: serving.StageID(id), budget: asked.Budget, demand: asked.Rate,
			percentile: r.Spec.Apps[asked.App].SLO.Percentile, workers: x.Workers[id],
			part: x.TimePart(serving.StageID(id)),
		}
		if err := s.measure(x); err != nil {
			return nil, nil, fmt.Errorf("planner %s: %w", p.Name(), err)
		}
		out = append(out, s)
	}
	return x, out, nil
}
