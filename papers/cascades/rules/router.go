package rules

import (
	"math"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Cascade is a router with a gear for each stage. A stage has one queue. A free instance takes the first query that it
// can serve in time, on the gear's variant for it, with those behind it that go to the same variant, as many as are in
// time together.
type Cascade struct {
	route.ByStage[state]
	name   string
	choose func(r *room, list []gear) gear
}

type state struct {
	gear gear
	due  serving.Time // when it is chosen anew
	set  bool
}

// NewFixed returns the cascade that is often compared with: the least accurate variant answers first, and the most
// accurate one the queries of which it is least sure, a fixed share of them.
func NewFixed(share float64) *Cascade {
	return &Cascade{name: "cascade", choose: func(r *room, list []gear) gear {
		return best(list, func(g *gear) float64 {
			spec := r.Fleet.Spec()
			return -10*spec.Variants[g.first].Accuracy + accuracyOf(spec, g.second) - math.Abs(g.again-share)
		})
	}}
}

// NewCascadeServe returns CascadeServe's router: its plan lists, by load, the most accurate cascade that the machines
// carry, and the load of the last second chooses. The paper computes the list in advance, with placements and least
// batch sizes by gear; here every machine holds what the placement says, no batch waits to be filled, and the entry of
// the present load is computed when it is needed.
func NewCascadeServe() *Cascade {
	return &Cascade{name: "cascadeserve", choose: func(r *room, list []gear) gear {
		return best(list, func(g *gear) float64 { return r.worth(g) })
	}}
}

// NewDiffServe returns DiffServe's router: of a light and a heavy model, the least and the most accurate variant, each
// has machines of its own, and a program chooses how many each has, the batch sizes and the highest threshold with
// which both carry what comes. The program is small enough to try everything. Where there is one machine both share it.
// The paper's discriminator is the variant's own confidence here.
func NewDiffServe() *Cascade {
	return &Cascade{name: "diffserve", choose: func(r *room, list []gear) gear {
		spec := r.Fleet.Spec()
		light := best(list, func(g *gear) float64 { return -10*accuracyOf(spec, g.first) + accuracyOf(spec, g.second) })
		var own []gear
		for _, g := range list {
			if g.first != light.first || g.second != light.second && g.second != serving.None {
				continue
			}
			if g.second == serving.None || len(r.part) < 2 {
				own = append(own, g)
				continue
			}
			for g.light = 1; g.light < len(r.part); g.light++ {
				own = append(own, g)
			}
		}
		return best(own, func(g *gear) float64 { return r.worth(g) })
	}}
}

// worth orders gears: those that carry the load by accuracy, and behind them all others by how fast they are.
func (r *room) worth(g *gear) float64 {
	if r.carries(g) {
		return g.accuracy
	}
	sum := 0.0
	for k, i := range r.Instances() {
		each := r.takes(i, g.first)
		if g.second != serving.None {
			each += g.again * r.takes(i, g.second)
		}
		sum += r.part[k] / each
	}
	return -1 / (1 + sum)
}

func accuracyOf(spec *serving.Spec, v serving.VariantID) float64 {
	if v == serving.None {
		return 0
	}
	return spec.Variants[v].Accuracy
}

// best returns the first gear with the highest worth.
func best(list []gear, worth func(*gear) float64) (out gear) {
	most := math.Inf(-1)
	for k := range list {
		if w := worth(&list[k]); w > most {
			most, out = w, list[k]
		}
	}
	return out
}

// Name implements route.Router.
func (c *Cascade) Name() string { return c.name }

// Needs implements route.Router.
func (*Cascade) Needs() plan.Sections { return plan.Limits }

// Traits implements route.Router.
func (*Cascade) Traits() route.Traits { return route.Traits{Chooses: true, Seconds: true} }

// Route implements route.Router.
func (c *Cascade) Route(v *route.View) {
	s := c.Of(v.Stage)
	if !s.set || v.Now >= s.due {
		list := gears(v.Fleet.Spec(), v.Stage)
		if len(list) == 0 {
			list = []gear{{first: serving.None, second: serving.None}}
		}
		s.gear, s.due, s.set = c.choose(newRoom(v), list), v.Now.Add(period), true
	}
	g := &s.gear
	c.settle(v, g)
	for k, i := range v.Instances() {
		if v.Waiting().Len() == 0 {
			return
		}
		if route.MayStart(v.Fleet, i) {
			g.fill(v, i, k)
		}
	}
}

// settle gives the answers of which their variant is sure enough.
func (c *Cascade) settle(v *route.View, g *gear) {
	stage := &v.Fleet.Spec().Stages[v.Stage]
	for ref := v.Waiting().Head(); ref != fleet.Nil; {
		own, t := ref, v.Fleet.Task(ref)
		ref = v.Fleet.Next(ref)
		if t.Hint() == 0 {
			continue
		}
		bin, at := stage.HintedAt(t.Hint())
		if g.second == serving.None || bin == nil || !bin.Improves(g.second) || at >= g.bins {
			v.Settle(own)
		}
	}
}

// fill gives the k-th ready instance a batch.
func (g *gear) fill(v *route.View, i *fleet.Instance, k int) {
	variant, items, n := serving.VariantID(serving.None), 0, 0
	var by serving.Time
	for ref := v.Waiting().Head(); ref != fleet.Nil; {
		own, t := ref, v.Fleet.Task(ref)
		ref = v.Fleet.Next(ref)
		w := g.variantFor(v.Fleet, i, k, t)
		if w == serving.None || n > 0 && (w != variant || t.Isolated()) {
			continue
		}
		takes := v.Fleet.Latency(w, i.DeviceType(), items+t.Items(), v.Fleet.Concurrency(i)+1)
		known := takes < profile.Unknown
		late := v.Fleet.Spec().Apps[v.Fleet.Spec().Stages[v.Stage].App].ServesLate(t.Work().Own) || t.Probe() ||
			t.ColdUntil() > v.Now
		if n == 0 {
			if known && !late && v.Now.Add(takes) > t.LatestEnd() {
				continue
			}
			variant, by = w, t.LatestEnd()
			v.Choose(i, w)
		} else if items+t.Items() > i.Variant(i.Find(w)).Limit || !known || v.Now.Add(takes) > min(by, t.LatestEnd()) {
			return
		}
		v.Assign(own, i)
		by = min(by, t.LatestEnd())
		items, n = items+t.Items(), n+1
		if t.Isolated() {
			return
		}
	}
}

// variantFor is the variant with which the k-th ready instance serves a task; serving.None for not at all.
func (g *gear) variantFor(f *fleet.View, i *fleet.Instance, k int, t *fleet.Task) serving.VariantID {
	want, apart := g.first, g.light > 0 && (k < g.light) == (t.Hint() > 0)
	if t.Hint() > 0 {
		want = g.second
	}
	at := -1
	if want != serving.None {
		at = i.Find(want)
	}
	if at >= 0 && i.Variant(at).Warm && f.Accepts(t, want) && t.Items() <= i.Variant(at).Limit && i.Serves(want) {
		if apart {
			return serving.None
		}
		return want
	}
	if t.Hint() > 0 {
		return serving.None
	}
	if at = f.Choose(i, t); at < 0 { // it requires another one, or the instance does not hold the gear's
		return serving.None
	}
	return i.Variant(at).Variant
}
