package engine

import (
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
	"github.com/sluice-serving/sluice/serving/profile"
)

// What the content of queries makes of a graph (Scrooge §3.5), for scalers that follow it: factors are counted when
// batches end, and go out with every request for a plan. From a request on, batches are believed to take as long as
// they were seen to: what later stages must be left, and when a query is hopeless, follows from that (§3.6, "recently
// observed execution latency"). Where latency is learned, it is learned that batches take longer, and no ballooning is
// counted.

// complexity is what an engine follows content with. The zero value follows nothing.
type complexity struct {
	factors    *monitor.Factors // nil where the scaler does not follow
	base       profile.Profile  // what is believed of batches that do not balloon
	fans       [][]float64      // asked with last; nil for those of the spec
	ballooning []float64        // believed in since; nil for none
	ballooned  bool             // something has ballooned, so that planners are told when it does no more
	turned     bool             // beliefs have changed since this step's work was done
}

func (e *Engine) follow() {
	if f, ok := e.scaler.(scale.Follower); ok && f.Follows() {
		e.content.factors, e.content.base = monitor.NewFactors(e.spec), e.profile
	}
}

// count takes up a batch that ended well.
func (e *Engine) count(i *fleet.Instance, b *fleet.Batch, in *Input) {
	c := &e.content
	if c.factors == nil {
		return
	}
	if e.learner == nil {
		c.factors.Ran(e.now, i.Stage, c.base.Latency(b.Variant, i.DeviceType, b.Items, b.AtOnce), in.Took)
	}
	if len(e.spec.Stages[i.Stage].Next) == 0 {
		return
	}
	for ref, part := b.Head, 0; ref != fleet.Nil; ref, part = e.fleet.Next(ref), part+1 {
		c.factors.Served(e.now, i.Stage, part, e.fleet.Task(ref).Items, in.Emitted)
	}
}

// observed fills in the factors of a request, and believes in them from now on.
func (e *Engine) observed(d *Decision) {
	c := &e.content
	if c.factors == nil {
		return
	}
	c.fans = c.factors.Scalings(e.now)
	d.Fans = c.fans
	if e.learner != nil {
		return
	}
	if b := c.factors.Balloonings(e.now); !slices.Equal(b, c.ballooning) {
		c.ballooning, c.ballooned, c.turned = b, true, true
		e.inflate()
		e.retime()
	}
	d.Ballooning = c.ballooning
}

// inflate has the engine believe in the ballooning.
func (e *Engine) inflate() {
	c := &e.content
	if e.profile = c.base; c.ballooning != nil {
		e.profile = profile.Inflated{Profile: c.base, Spec: e.spec, Factors: c.ballooning}
	}
	e.fleet.Profile = e.profile
}

// widen takes up a world that has grown, with what is believed of it where nothing balloons.
func (e *Engine) widen(p profile.Profile) {
	e.content.base, e.profile = p, p
	if e.content.factors != nil {
		e.content.factors.Grow(e.spec)
		e.inflate()
	}
}

// madeWith notes in a plan the factors that it was asked for with.
func (e *Engine) madeWith(p *plan.Plan) *plan.Plan {
	c := &e.content
	if p.Snapshot != e.request || c.fans == nil && c.ballooning == nil {
		return p
	}
	out := *p
	out.FanOuts, out.Ballooning = c.fans, c.ballooning
	return &out
}

// suspects tells whether batches of a stage may be believed in as too long.
func (e *Engine) suspects(s serving.StageID) bool {
	return e.learner != nil || int(s) < len(e.content.ballooning) && e.content.ballooning[s] > 1
}
