package priced

import (
	"slices"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// mostShown bounds the choices of a route.Weighing.
const mostShown = 8

// Watch implements route.Watched.
func (r *Rule) Watch(f func(*route.Weighing)) { r.watch = f }

// weigh lists the batches that are compared, before one of them is taken away: the best first.
func (r *Rule) weigh(v *route.View, best *stage, group int) {
	w := &r.weighing
	w.Choices, w.More, w.Late, w.Beside = append(w.Choices[:0], best.choice(r, group)), 0, false, false
	for s := range r.stages {
		x := &r.stages[s]
		if v.Fleet.Central(x.id).Len() == 0 {
			continue
		}
		for _, g := range x.groups {
			c := &x.candidates[g]
			if r.machines.groups[g].free == 0 || !r.hasFormed(x, c) || c.n == 0 || x == best && int(g) == group {
				continue
			}
			w.add(x.choice(r, int(g)))
		}
	}
}

// weighing is a route.Weighing that is being made.
type weighing struct{ route.Weighing }

// add inserts a choice by its score. The first stays the first.
func (w *weighing) add(y route.Choice) {
	at := len(w.Choices)
	for at > 1 && w.Choices[at-1].Score < y.Score {
		at--
	}
	if len(w.Choices) == mostShown {
		w.More++
		if at == mostShown {
			return
		}
		w.Choices = w.Choices[:mostShown-1]
	}
	w.Choices = slices.Insert(w.Choices, at, y)
}

// join adds late tasks of one item to the batch that begins.
func (w *weighing) join(late int, o *option) {
	x := &w.Choices[0]
	x.Queries, x.Items = x.Queries+late, x.Items+late
	x.Seconds = o.seconds[x.Items]
}

// choice describes the best batch of a stage on a group's machines.
func (x *stage) choice(r *Rule, g int) route.Choice {
	c, y := &x.candidates[g], &r.machines.groups[g]
	o := &y.options[c.option]
	return route.Choice{
		Stage: x.id, Variant: o.variant, Device: y.device, Queries: c.n, Items: c.items, Seconds: o.seconds[c.items],
		Gain: c.gain, Price: c.price, Blocks: c.blocks, Score: c.score,
	}
}

// began tells who watches that an instance was given the batch that was weighed.
func (r *Rule) began(i *fleet.Instance) {
	r.weighing.Instance = i.ID()
	r.watch(&r.weighing.Weighing)
}

// beganBeside tells who watches that an instance was given a batch beside what runs on its machine.
func (r *Rule) beganBeside(i *fleet.Instance, x *stage, b *beside) {
	w := &r.weighing
	w.More, w.Late, w.Beside = 0, false, true
	w.Choices = append(w.Choices[:0], route.Choice{
		Stage: x.id, Variant: b.option.variant, Device: i.DeviceType(), Queries: b.n, Items: b.items,
		Seconds: b.option.seconds[b.items], Gain: b.gain, Price: b.price, Score: b.score,
	})
	r.began(i)
}

// beganLate tells who watches that an instance was given a batch of queries that are late anyway.
func (r *Rule) beganLate(i *fleet.Instance, x *stage, o *option, group, queries, items int) {
	w := &r.weighing
	y := &r.machines.groups[group]
	w.More, w.Late, w.Beside = 0, true, false
	w.Choices = append(w.Choices[:0], route.Choice{
		Stage: x.id, Variant: o.variant, Device: y.device, Queries: queries, Items: items, Seconds: o.seconds[items],
		Price: y.price,
	})
	r.began(i)
}
