package systems

import (
	"context"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Open is a planner for a world that grows while it runs: it asks a planner about what is open of the world, and makes
// a new one when the world is another. It is the one place where what is closed or retired is left out of plans. It
// must not be asked twice at once.
type Open struct {
	make    func(profile.Profile) (plan.Planner, error)
	profile profile.Profile
	first   plan.Planner

	spec    *serving.Spec // that the rest is for
	open    *serving.Open
	planner plan.Planner
}

// NewOpen returns a planner that asks those which maker makes from what is believed of latency, p until a request says
// otherwise. A placement that is written down is of apps that come first in the world and are never closed.
func NewOpen(p profile.Profile, maker func(profile.Profile) (plan.Planner, error)) (*Open, error) {
	first, err := maker(p)
	if err != nil {
		return nil, err
	}
	return &Open{make: maker, profile: p, first: first}, nil
}

// Name implements plan.Planner.
func (o *Open) Name() string { return o.first.Name() }

// Provides implements plan.Planner.
func (o *Open) Provides() plan.Sections { return o.first.Provides() }

// Plan implements plan.Planner.
func (o *Open) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	if o.spec != r.Spec {
		if err := o.turn(&r); err != nil {
			return nil, err
		}
	}
	if len(o.open.Apps) == 0 {
		return plan.Nothing(o.Name(), r.Snapshot), nil
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

// turn makes a planner for another world. One that differs in what was observed of its graphs only keeps its planner.
func (o *Open) turn(r *plan.Request) (err error) {
	open, p := r.Spec.Open(), o.profile
	if r.Spec.EqualButFanOuts(o.spec) {
		o.spec, o.open = r.Spec, open
		return nil
	}
	if r.Beliefs != nil {
		p = r.Beliefs
	}
	if !open.Whole() {
		p = profile.Renumbered{Profile: p, Variants: open.Variants}
	}
	planner, err := o.make(p)
	if err != nil {
		return err
	}
	o.spec, o.open, o.planner = r.Spec, open, planner
	return nil
}
