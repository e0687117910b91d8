package route

import (
	"github.com/sluice-serving/sluice/internal/algo/turns"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Weighted gives each instance its planned share of the stage's queries, deterministically, to within one query
// (turns.Turns). Without planned shares all are equal.
//
// Proteus §4 routes by the plan's y this way. The authors' release draws instances uniformly.
type Weighted struct{ ByStage[weightedStage] }

type weightedStage struct {
	epoch uint64
	built bool
	turns turns.Turns // of the ready instances, by index
}

// NewWeighted returns the rule.
func NewWeighted() *Weighted { return &Weighted{} }

// Name implements Router.
func (*Weighted) Name() string { return "weighted" }

// Needs implements Router.
func (*Weighted) Needs() plan.Sections { return plan.Shares }

// Traits implements Router.
func (*Weighted) Traits() Traits { return Traits{} }

// Route implements Router. A query without requirements costs time logarithmic in the stage's instances.
func (o *Weighted) Route(v *View) {
	s := o.Of(v.Stage)
	all := v.Instances()
	if !s.built || s.epoch != v.Fleet.Epoch() {
		s.epoch, s.built = v.Fleet.Epoch(), true
		s.turns.Begin(len(all), func(at int) float64 { return all[at].Share() })
	}
	if len(all) == 0 {
		return
	}
	v.each(func(_ fleet.Ref, t *fleet.Task) *fleet.Instance {
		accept := func(at int) bool { return v.Fleet.CanServe(all[at], t) }
		at := s.turns.Next()
		if at < 0 || !accept(at) {
			at = s.turns.NextOf(accept)
		}
		if at < 0 {
			return nil
		}
		s.turns.Take(at)
		return all[at]
	})
}
