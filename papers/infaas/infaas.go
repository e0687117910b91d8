// Package infaas plans as INFaaS (ATC 2021, §4.2) scales models, with accuracy in place of cost (Proteus §6.1.1,
// "INFaaS-Accuracy"). It starts from the placement that runs and takes one greedy action after the other. It solves no
// program, so a plan can be made while queries arrive. It ends where no single action helps, which need not be the best
// placement.
package infaas

import (
	"cmp"
	"context"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Planner implements plan.Planner. It keeps nothing between plans: what runs is in the request's snapshot.
type Planner struct {
	Profile profile.Profile
	Options Options
}

// Options of a Planner. The zero value is INFaaS-Accuracy with the constants of the Proteus authors' release.
type Options struct {
	// Headroom is the factor on the demand that capacity must reach; 0 means 1 / Factor.
	Headroom float64
	// Slack is the part of its demand that a stage must have to spare after an upgrade; 0 means 0.05 (the release; 0.1
	// on bursty loads). Without slack the next arrival would undo the upgrade.
	Slack float64
	// Factor is the part of a stage's capacity up to which it may be loaded; 0 means 1 - Slack.
	Factor float64
	// Down is the load of the remaining instances, as a part of their capacity, up to which one may be given up; 0
	// means 0.4 (the release; 0.3 on bursty loads).
	Down float64
	// Fraction of the stage's budget that a batch may take; 0 means one half (Proteus §4).
	Fraction float64
	// Batches are the batch sizes that may be planned; nil means any.
	Batches []int
	// Share has stages share workers that the rule leaves with nothing (capacity.BatchRule.ShareLeftOut).
	Share bool
	// Oddities plans as the release's code does where that differs from the paper's description; see release.go.
	Oddities bool
}

const (
	defaultSlack = 0.05
	defaultDown  = 0.4
)

func (o Options) filled() Options {
	o.Slack = cmp.Or(o.Slack, defaultSlack)
	o.Factor = cmp.Or(o.Factor, 1-o.Slack)
	o.Headroom = cmp.Or(o.Headroom, 1/o.Factor)
	o.Down = cmp.Or(o.Down, defaultDown)
	return o
}

// Name implements plan.Planner.
func (p *Planner) Name() string { return "infaas" }

// Provides implements plan.Planner.
func (p *Planner) Provides() plan.Sections { return plan.Shares | plan.Limits | plan.BatchTimeouts }

// Plan implements plan.Planner. A plan that cannot carry the demand says in Shed what it leaves out. It fails when some
// stage cannot be served at all.
func (p *Planner) Plan(_ context.Context, r plan.Request) (*plan.Plan, error) {
	x, err := p.read(r)
	if err != nil {
		return nil, err
	}
	if x.o.Oddities {
		x.release(r.Believed(p.Profile), r.Snapshot)
		return p.complete(&r, x.plan(r)), nil
	}
	x.cover()
	// A worker that one stage gives up may help another stage, so the steps are repeated. Every action raises the
	// served rate, or else the accuracy, or else makes a worker idle, so the loop ends.
	for changed := true; changed; {
		changed = x.closeDeficits()
		changed = x.upgrade() || changed
		changed = x.retire() || changed
	}
	return p.complete(&r, x.plan(r)), nil
}

// complete has stages share workers, if that is wanted, for which there are too few.
func (p *Planner) complete(r *plan.Request, out *plan.Plan) *plan.Plan {
	if !p.Options.Share {
		return out
	}
	rule := capacity.BatchRule{Fraction: p.Options.Fraction, Batches: p.Options.Batches}
	rule.ShareLeftOut(r, r.Believed(p.Profile), out, capacity.Sharers{})
	return out
}
