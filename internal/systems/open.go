package systems

import (
	"context"
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Open is a planner for a spec that grows while it runs. It shows another planner only the open apps and variants, and
// makes a new one when the spec has changed. No other code keeps closed apps and retired variants out of plans. It is
// not safe for concurrent use.
type Open struct {
	make  OpenMaker
	known *plan.Known  // of the first spec
	first plan.Planner // for the first spec: name and sections

	spec    *serving.Spec // the one of open and planner
	open    *serving.Open
	planner plan.Planner
}

// OpenMaker makes a planner for the open part of a spec, over the latencies that are believed of it. open is nil where
// nothing is left out.
type OpenMaker func(latencies profile.Profile, open *serving.Open) (plan.Planner, error)

// NewOpen returns a planner that uses the planners of maker. known is of the spec until requests say something else.
// maker gets the believed latencies: those of known, or those of the request. It returns maker's error.
func NewOpen(known plan.Known, maker OpenMaker) (*Open, error) {
	first, err := maker(known.Profile, nil)
	if err != nil {
		return nil, err
	}
	return &Open{make: maker, known: &known, first: first}, nil
}

// Name implements plan.Planner.
func (o *Open) Name() string { return o.first.Name() }

// Provides implements plan.Planner.
func (o *Open) Provides() plan.Sections { return o.first.Provides() }

// Plan implements plan.Planner. It also returns an error when no planner can be made for a changed spec. Planners of
// papers fail where nothing serves an app. An app whose models failed to load is left out then, so that the others are
// planned for.
func (o *Open) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	p, err := o.plan(ctx, r)
	if err == nil || ctx.Err() != nil {
		return p, err
	}
	var others bool
	if r.Spec, others = loadable(r.Spec, r.Snapshot); others {
		if p, without := o.plan(ctx, r); without == nil {
			return p, nil
		}
	}
	return nil, err
}

// loadable returns a spec in which the apps are closed that have a stage whose variants all failed to load, and that no
// instance serves; false where that is none or all of them.
func loadable(spec *serving.Spec, snapshot *fleet.Snapshot) (*serving.Spec, bool) {
	if snapshot == nil || len(snapshot.Broken) == 0 {
		return spec, false
	}
	served := make([]bool, len(spec.Variants))
	for _, i := range snapshot.Instances {
		for _, l := range i.Variants {
			served[l.Variant] = served[l.Variant] || l.Warm
		}
	}
	left, open := spec, 0
	for a := range spec.Apps {
		if spec.Apps[a].Closed {
			continue
		}
		open++
		for _, s := range spec.Apps[a].Stages {
			if !slices.ContainsFunc(spec.Stages[s].Variants, func(v serving.VariantID) bool {
				return served[v] || !spec.Variants[v].Retired && !slices.Contains(snapshot.Broken, v)
			}) {
				left = left.WithClosed(serving.AppID(a))
				open--
				break
			}
		}
	}
	return left, left != spec && open > 0
}

// plan makes a plan of what is open.
func (o *Open) plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	if r.Known == nil {
		r.Known = o.known
	}
	if o.spec != r.Spec {
		if err := o.replace(&r); err != nil {
			return nil, err
		}
	}
	if len(o.open.Apps) == 0 {
		return plan.Empty(o.Name(), r.Snapshot), nil
	}
	if o.open.Whole() {
		return o.planner.Plan(ctx, r)
	}
	p, err := o.planner.Plan(ctx, r.Restricted(o.open))
	if err != nil {
		return nil, err
	}
	return p.Expanded(o.open), nil
}

// replace makes a planner for the request's spec. A spec that differs in the observed fan-out alone keeps its planner.
func (o *Open) replace(r *plan.Request) (err error) {
	open, p := r.Spec.Open(), r.Known.Profile
	var left *serving.Open
	if r.Spec.EqualButFanOuts(o.spec) {
		o.spec, o.open = r.Spec, open
		return nil
	}
	if r.Beliefs != nil {
		p = r.Beliefs
	}
	if !open.Whole() {
		p, left = profile.Renumbered{Profile: p, Variants: open.Variants}, open
	}
	planner, err := o.make(p, left)
	if err != nil {
		return err
	}
	o.spec, o.open, o.planner = r.Spec, open, planner
	return nil
}
