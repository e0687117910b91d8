package engine

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// content follows the content of queries (Scrooge §3.5), for scalers that ask for it. It counts factors when batches
// end, and puts them into every request for a plan. From a request on, batches are believed to take as long as they
// were seen to: tails and drop times follow from that (§3.6, "recently observed execution latency"). Where latency is
// learned, beliefs balloon by themselves and no ballooning is counted.
type content struct {
	*world
	beliefs *beliefs
	factors *monitor.Factors // nil where the scaler does not follow
	fans    [][]float64      // by stage and edge, of the last request; nil for those of the spec
}

func newContent(w *world, b *beliefs, follows bool) *content {
	c := &content{world: w, beliefs: b}
	if follows {
		c.factors = monitor.NewFactors(w.spec)
	}
	return c
}

// count counts a batch that ended well. Its tasks must not be released yet.
func (c *content) count(i *fleet.Instance, b *fleet.Batch, took time.Duration, emitted []int32) {
	if c.factors == nil {
		return
	}
	if c.beliefs.learner == nil && !b.Overlaps {
		expected := c.beliefs.base.Latency(b.Variant, i.DeviceType(), b.Items, b.Concurrency)
		c.factors.AddBatch(c.now, i.Stage(), expected, c.beliefs.lengths.atReference(i, b, c.beliefs.base, took))
	}
	if len(c.spec.Stages[i.Stage()].Next) == 0 {
		return
	}
	for ref, k := b.Head, 0; ref != fleet.Nil; ref, k = c.fleet.Next(ref), k+1 {
		c.factors.AddTask(c.now, i.Stage(), k, c.fleet.Task(ref).Items(), emitted)
	}
}

// ask puts the factors into a request for a plan and makes them the belief from now on.
func (c *content) ask(r *plan.Request) {
	if c.factors == nil {
		return
	}
	c.fans = c.factors.Scalings(c.now)
	r.FanOuts = c.fans
	if c.beliefs.learner != nil {
		return
	}
	if b := c.factors.Balloonings(c.now); !slices.Equal(b, c.beliefs.ballooning) {
		c.beliefs.inflate(b)
	}
	r.Ballooning = c.beliefs.ballooning
}

// withFactors returns an answer to the last request with the request's factors. The plan itself is not changed.
func (c *content) withFactors(p *plan.Plan) *plan.Plan {
	if c.fans == nil && c.beliefs.ballooning == nil {
		return p
	}
	out := *p
	out.FanOuts, out.Ballooning = c.fans, c.beliefs.ballooning
	return &out
}

// view returns the factors for the scaler; nil where it does not follow them.
func (c *content) view() *monitor.FactorView {
	if c.factors == nil {
		return nil
	}
	return &c.factors.FactorView
}

// grow extends the factors to a spec that has grown.
func (c *content) grow(fresh []serving.StageID) {
	if c.factors == nil {
		return
	}
	c.factors.Grow(c.spec, fresh)
	c.fans = slices.Clone(c.fans)
	serving.Forget(c.fans, fresh, nil) // as in the spec
}
