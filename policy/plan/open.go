package plan

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Restricted returns r for the open part of its spec: identifiers are translated, and instances and variants that are
// not open are left out of the snapshot. r itself does not change.
func (r Request) Restricted(o *serving.Open) Request {
	r.Spec = o.Spec
	r.Rates = restrict(r.Rates, o.Apps)
	r.Recent = restrict(r.Recent, o.Apps)
	r.Dispersions = restrict(r.Dispersions, o.Apps)
	r.Mixes = restrict(r.Mixes, o.Apps)
	r.FanOuts = restrict(r.FanOuts, o.Stages)
	r.Ballooning = restrict(r.Ballooning, o.Stages)
	r.Known = r.Known.Restricted(o)
	if r.Beliefs != nil {
		r.Beliefs = profile.Renumbered{Profile: r.Beliefs, Variants: o.Variants}
	}
	if r.Snapshot != nil {
		s := *r.Snapshot
		s.Instances, s.Broken = nil, nil
		for _, i := range r.Snapshot.Instances {
			if i.Stage = o.StageOf[i.Stage]; i.Stage == serving.None {
				continue
			}
			variants := i.Variants
			i.Variants = nil
			for _, l := range variants {
				if l.Variant = o.VariantOf[l.Variant]; l.Variant != serving.None {
					i.Variants = append(i.Variants, l)
				}
			}
			s.Instances = append(s.Instances, i)
		}
		for _, v := range r.Snapshot.Broken {
			if v = o.VariantOf[v]; v != serving.None {
				s.Broken = append(s.Broken, v)
			}
		}
		r.Snapshot = &s
	}
	return r
}

// restrict returns the entries of a table for identifiers, which ascend. Planners accept tables that end early, so
// identifiers beyond the end of the table are left out.
func restrict[T any, I ~int32](all []T, ids []I) []T {
	if all == nil {
		return nil
	}
	out := make([]T, 0, len(ids))
	for _, id := range ids {
		if int(id) >= len(all) {
			break
		}
		out = append(out, all[id])
	}
	return out
}

// expand is the inverse of restrict: it returns a table of n entries in which entry ids[k] is some[k] and all others
// are zero.
func expand[T any, I ~int32](some []T, ids []I, n int) []T {
	if some == nil {
		return nil
	}
	out := make([]T, n)
	for at := range some {
		out[ids[at]] = some[at]
	}
	return out
}

// Expanded returns a plan for the open part of a spec as a plan for all of it. p itself does not change; the content of
// its instances and policies is copied.
func (p *Plan) Expanded(o *serving.Open) *Plan {
	out := *p
	apps, stages := len(o.AppOf), len(o.StageOf)
	out.Instances = slices.Clone(p.Instances)
	for n := range out.Instances {
		i := &out.Instances[n]
		i.Stage = o.Stages[i.Stage]
		i.Variants = slices.Clone(i.Variants)
		for k := range i.Variants {
			i.Variants[k].Variant = o.Variants[i.Variants[k].Variant]
		}
	}
	out.Budgets = expand[time.Duration](p.Budgets, o.Stages, stages)
	out.Policies = slices.Clone(p.Policies)
	for n := range out.Policies {
		x := &out.Policies[n]
		x.Stage, x.ByRate = o.Stages[x.Stage], slices.Clone(x.ByRate)
		for k := range x.ByRate {
			x.ByRate[k].Choices = slices.Clone(x.ByRate[k].Choices)
			for c := range x.ByRate[k].Choices {
				x.ByRate[k].Choices[c].Variant = o.Variants[x.ByRate[k].Choices[c].Variant]
			}
		}
	}
	out.Values = slices.Clone(p.Values)
	for n := range out.Values {
		out.Values[n].Stage = o.Stages[out.Values[n].Stage]
	}
	out.Demand = expand(p.Demand, o.Apps, apps)
	out.Capacity = expand(p.Capacity, o.Apps, apps)
	out.Mixes = expand(p.Mixes, o.Apps, apps)
	out.Shed = expand(p.Shed, o.Apps, apps)
	out.TooLarge = expand(p.TooLarge, o.Apps, apps)
	out.FanOuts = expand(p.FanOuts, o.Stages, stages)
	out.Ballooning = expand(p.Ballooning, o.Stages, stages)
	out.Sharing = slices.Clone(p.Sharing)
	for n := range out.Sharing {
		out.Sharing[n] = o.Stages[out.Sharing[n]]
	}
	out.Forecast.Late = expand(p.Forecast.Late, o.Apps, apps)
	out.Forecast.Accurate = expand(p.Forecast.Accurate, o.Apps, apps)
	if x := p.Forecast.Second; x != nil {
		out.Forecast.Second = &SecondAnswers{
			Shares: expand(x.Shares, o.Apps, apps), Gains: expand(x.Gains, o.Apps, apps), Saved: x.Saved,
		}
	}
	out.MarginalRates = expand(p.MarginalRates, o.Stages, stages)
	return &out
}

// Empty returns a plan without instances, for a spec in which no app is open. A nil snapshot is allowed.
func Empty(planner string, snapshot *fleet.Snapshot) *Plan {
	p := &Plan{Planner: planner, Forecast: Forecast{Violation: -1}}
	if snapshot != nil {
		p.Snapshot = snapshot.Seq
	}
	return p
}
