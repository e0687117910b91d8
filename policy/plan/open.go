package plan

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Of returns the request for the part of its world that is open. Instances of what is not are left out of the snapshot.
func (r Request) Restricted(o *serving.Open) Request {
	r.Spec = o.Spec
	r.Rates = restrict(r.Rates, o.Apps)
	r.Mixes = restrict(r.Mixes, o.Apps)
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

// picked returns the entries of a table by identifier that exist; entries beyond its end are left out, as planners take
// it.
func restrict[T any, I ~int32](all []T, ids []I) []T {
	if all == nil {
		return nil
	}
	out := make([]T, 0, len(ids))
	for _, id := range ids {
		if int(id) >= len(all) {
			break // identifiers ascend
		}
		out = append(out, all[id])
	}
	return out
}

// spread puts the entries of a table back to where they are in the whole world.
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

// In returns a plan for the open part of a world as one for the whole of it.
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
	out.MarginalRates = expand(p.MarginalRates, o.Stages, stages)
	return &out
}

// Nothing is the plan for a world in which nothing is open: run nothing.
func Nothing(planner string, snapshot *fleet.Snapshot) *Plan {
	p := &Plan{Planner: planner, Forecast: Forecast{Violation: -1}}
	if snapshot != nil {
		p.Snapshot = snapshot.Seq
	}
	return p
}
