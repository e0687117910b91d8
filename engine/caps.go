package engine

import (
	"maps"
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// caps learns how large batches may be. A device type that lacked memory for a batch gets half of it at most from then
// on, of that variant. The limit holds until the end of the run: what else takes memory there is not known.
type caps struct {
	*world
	agenda  *agenda
	out     *decisions
	force   *inForce
	beliefs *beliefs
	queries *queries
	most    map[profile.Cell]int // items; replaced, never changed, since planners read it
}

// exceeded learns from a batch for which an instance lacked memory, and says so. Nothing is learned from a batch of one
// item: no smaller one exists.
func (c *caps) exceeded(i *fleet.Instance, b *fleet.Batch) {
	cell := profile.Cell{Variant: b.Variant, DeviceType: i.DeviceType()}
	limit := b.Items / 2
	if most, ok := c.most[cell]; limit < 1 || ok && most <= limit {
		return
	}
	grown := maps.Clone(c.most)
	if grown == nil {
		grown = make(map[profile.Cell]int)
	}
	grown[cell] = limit
	c.most = grown
	d := c.out.ofVariant(LimitBatch, OutOfMemory, i.ID(), b.Variant)
	d.Items, d.DeviceType = int32(limit), cell.DeviceType
	c.force.limit(cell, limit)
	for _, o := range c.fleet.Live() {
		if k := o.Find(b.Variant); k >= 0 && o.DeviceType() == cell.DeviceType && o.Variant(k).Limit > limit {
			c.fleet.SetLimit(o, k, limit)
			c.fleet.Refresh(o)
			c.queries.sendAllBack(o) // some may no longer fit
			c.agenda.touch(o)
			c.agenda.reduced.add(int(o.Stage()))
			c.agenda.routeStage(o.Stage())
		}
	}
	c.beliefs.cap(c.most)
	c.agenda.changeBasis()
}

// forget drops what was learned of the variants that had the places of fresh ones.
func (c *caps) forget(fresh []serving.VariantID) {
	gone := func(x profile.Cell, _ int) bool { return slices.Contains(fresh, x.Variant) }
	left := maps.Clone(c.most)
	if maps.DeleteFunc(left, gone); len(left) < len(c.most) {
		c.most = left
		c.beliefs.cap(left)
	}
}

// within returns a plan whose batch limits are what device types have memory for. It does not change p.
func (c *caps) within(p *plan.Plan) *plan.Plan {
	if len(c.most) == 0 {
		return p
	}
	out := *p
	out.Instances = make([]plan.Instance, len(p.Instances))
	for k := range p.Instances {
		out.Instances[k] = capped(p.Instances[k], p.Instances[k].DeviceType(c.spec), c.most)
	}
	return &out
}

// capped returns an instance of a device type with batch limits of at most most.
func capped(i plan.Instance, d serving.DeviceTypeID, most map[profile.Cell]int) plan.Instance {
	variants := make([]plan.Variant, len(i.Variants))
	copy(variants, i.Variants)
	for k := range variants {
		if n, ok := most[profile.Cell{Variant: variants[k].Variant, DeviceType: d}]; ok {
			variants[k].Limit = min(variants[k].Limit, n)
		}
	}
	i.Variants = variants
	return i
}
