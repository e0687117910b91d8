package rules

import (
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/plan"
)

// PolicyTable looks up variant and batch size in a table made in advance, by the length of the queue and the time left
// to its first deadline (RAMSIS §3.2.2). The arrival rate of the last half second selects the table. The rule is
// work-conserving. Tables have no state for queries with requirements of their own or with several items: MostAccurate
// serves a queue that holds any.
type PolicyTable struct{}

// Name implements batch.Rule.
func (PolicyTable) Name() string { return "policytable" }

// Needs implements batch.Rule.
func (PolicyTable) Needs() plan.Sections { return plan.Tables }

// Traits implements batch.Rule.
func (PolicyTable) Traits() batch.Traits { return batch.Traits{Chooses: true} }

// New implements batch.Rule.
func (PolicyTable) New() batch.Batcher { return &policyTable{} }

// mostAccurate decides where no policy does. It keeps nothing.
var mostAccurate = batch.MostAccurate{}.New()

type policyTable struct {
	batch.NoLearning
	of       *plan.Plan
	policies *plan.Policies
}

func (b *policyTable) Decide(v *batch.View) batch.Decision {
	if b.of != v.Plan {
		b.of, b.policies = v.Plan, v.Plan.PoliciesOf(v.Instance.Stage(), v.Instance.DeviceType())
	}
	q := v.Instance.Queue()
	if b.policies == nil || !q.Unconstrained() || !q.SingleItems() {
		return mostAccurate.Decide(v)
	}
	app := v.Fleet.Spec().Stages[v.Instance.Stage()].App
	n := q.Len()
	left := v.Earliest(n).Sub(v.Now)
	c := b.policies.At(v.Monitor.Recent(v.Now, app)).Choice(n, left)
	at := v.Instance.Find(c.Variant)
	if at < 0 {
		return mostAccurate.Decide(v)
	}
	if l := v.Instance.Variant(at); !l.Usable() || int(c.Queries) > l.Limit {
		return mostAccurate.Decide(v) // the variant is still loading
	}
	return batch.Decision{
		Action: batch.Run, N: min(int(c.Queries), v.Ready), Variant: c.Variant, Reason: batch.FromPolicy,
	}
}
