package route

import (
	"math/rand/v2"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Random draws an instance for each query, with the probability of its planned share, as a load balancer without memory
// and the release of Proteus do. Each instance's arrivals are then at least as bursty as a Poisson process. Weighted
// keeps them as even as the stage's.
type Random struct {
	rng   *rand.Rand
	draws []int // indices of instances that may serve the present query
}

// NewRandom returns the rule, which keeps rng and draws from it.
func NewRandom(rng *rand.Rand) *Random { return &Random{rng: rng} }

// Name implements Router.
func (*Random) Name() string { return "random" }

// Needs implements Router.
func (*Random) Needs() plan.Sections { return plan.Shares }

// Traits implements Router.
func (*Random) Traits() Traits { return Traits{} }

// Route implements Router.
func (o *Random) Route(v *View) {
	all := v.Instances()
	v.each(func(_ fleet.Ref, t *fleet.Task) *fleet.Instance {
		o.draws = o.draws[:0]
		total := 0.0
		for i := range all {
			if v.Fleet.CanServe(all[i], t) {
				o.draws = append(o.draws, i)
				total += all[i].Share()
			}
		}
		if len(o.draws) == 0 {
			return nil
		}
		return all[o.draw(all, total)]
	})
}

// draw picks one of the candidates, with equal probabilities when their shares add up to 0.
func (o *Random) draw(all []*fleet.Instance, total float64) int {
	if total <= 0 {
		return o.draws[o.rng.IntN(len(o.draws))]
	}
	x := o.rng.Float64() * total
	for _, i := range o.draws {
		if x -= all[i].Share(); x < 0 {
			return i
		}
	}
	return o.draws[len(o.draws)-1]
}
