package engine

import (
	"fmt"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// inForce is the plan in force: which instances it wants, and where.
type inForce struct {
	*world
	plan     *plan.Plan                  // nil before the first
	wants    map[fleet.Key]plan.Instance // by place
	places   []fleet.Key                 // of wants, in the order of the plan
	outdated bool                        // the spec has grown since it was made
	of       *serving.Spec               // that it was made for; nil before the first
}

func newInForce(w *world) *inForce {
	return &inForce{world: w, wants: make(map[fleet.Key]plan.Instance)}
}

// set puts a valid plan into force. An instance without a place of its own gets the next number on its worker.
func (p *inForce) set(x *plan.Plan) {
	p.plan, p.of, p.outdated = x, p.spec, false
	clear(p.wants)
	p.places = p.places[:0]
	ordinals := make(map[serving.WorkerID]int32)
	for _, i := range x.Instances {
		ordinals[i.Worker]++
		k := fleet.Key{Worker: i.Worker, Ordinal: ordinals[i.Worker]}
		if i.Place > 0 {
			k.Ordinal = i.Place
		}
		p.wants[k] = i
		p.places = append(p.places, k)
	}
}

// has reports whether the plan wants a variant at a place.
func (p *inForce) has(k fleet.Key, v serving.VariantID) bool {
	for _, w := range p.wants[k].Variants {
		if w.Variant == v {
			return true
		}
	}
	return false
}

// serves reports whether the plan has an instance for some work, running or to be launched.
func (p *inForce) serves(w *fleet.Work) bool {
	for _, i := range p.wants {
		if i.Stage != w.Stage {
			continue
		}
		for _, v := range i.Variants {
			if int(w.Items) <= v.Limit && p.fleet.Meets(w, v.Variant) {
				return true
			}
		}
	}
	return false
}

// limit lowers the batch limit of a variant, in items, wherever the plan has it on a device type.
func (p *inForce) limit(cell profile.Cell, items int) {
	for k, i := range p.wants {
		if i.DeviceType(p.spec) == cell.DeviceType {
			p.wants[k] = capped(i, cell.DeviceType, map[profile.Cell]int{cell: items})
		}
	}
}

// check reports places that are not those of the plan.
func (p *inForce) check() error {
	if p.plan != nil && len(p.wants) > len(p.plan.Instances) {
		return fmt.Errorf("%d places are wanted of a plan of %d instances", len(p.wants), len(p.plan.Instances))
	}
	return nil
}
