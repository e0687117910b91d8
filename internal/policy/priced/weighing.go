package priced

import (
	"slices"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// mostShown bounds the choices of a route.Weighing.
const mostShown = 8

// Watch implements route.Watched.
func (r *Rule) Watch(f func(*route.Weighing)) { r.watch = f }

// weigh lists the batches that are compared, before one of them is taken away: the best first.
func (r *Rule) weigh(v *route.View, best *stage, group int) {
	w := &r.weighing
	w.Choices, w.More, w.Late, w.Overlaps = append(w.Choices[:0], r.choiceOf(best, group)), 0, false, false
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
			w.add(r.choiceOf(x, int(g)))
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

// choiceOf describes the best batch of a stage on a group's machines.
func (r *Rule) choiceOf(x *stage, g int) route.Choice {
	return x.choice(r.machines.groups[g].device, &x.candidates[g].batch)
}

// choice describes a batch of a stage.
func (x *stage) choice(d serving.DeviceTypeID, b *batch) route.Choice {
	return route.Choice{
		Stage: x.id, Variant: b.option.variant, Device: d, Queries: b.n, Items: b.items,
		Seconds: b.seconds(0), Gain: b.gain, Price: b.price, Blocks: b.blocks, Score: b.score,
	}
}

// began tells who watches that an instance was given the batch that was weighed.
func (r *Rule) began(i *fleet.Instance) {
	r.weighing.Instance = i.ID()
	r.watch(&r.weighing.Weighing)
}

// beganAlone tells who watches that an instance was given a batch that was compared with no other.
func (r *Rule) beganAlone(i *fleet.Instance, x *stage, b *batch, late, overlaps bool) {
	w := &r.weighing
	w.More, w.Late, w.Overlaps = 0, late, overlaps
	w.Choices = append(w.Choices[:0], x.choice(i.DeviceType(), b))
	r.began(i)
}
