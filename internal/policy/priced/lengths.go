package priced

import (
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Queries of many lengths share a batch where each pays for it: one that is longer than the others, or shorter, joins
// if what it brings is more than the machine time by which it makes the batch longer. What it is worth later has the
// price of its own time.

// stretch notes by what the lengths of a stage's tasks multiply their time on an option.
func (r *Rule) stretch(v *route.View, w *way) {
	r.factors = r.factors[:0]
	if !w.stage.long {
		return
	}
	device := r.machines.groups[w.group].device
	for j := range w.stage.differing {
		r.factors = append(r.factors, v.Fleet.Stretch(w.option.variant, device, w.stage.differing[j].length))
	}
}

// factor is what stretch has noted for a task.
func (r *Rule) factor(j int) float64 {
	if j >= len(r.factors) {
		return 1
	}
	return r.factors[j]
}

// stretched is how long a batch takes that takes t seconds with items of the mean length.
func (o *option) stretched(t, factor float64) float64 {
	if factor == 1 {
		return t
	}
	base := min(o.base, t)
	return base + factor*(t-base)
}

// takes is how long a task takes alone.
func (o *option) takes(f *fleet.View, d serving.DeviceTypeID, t *fleet.Task) float64 {
	if t.Length() == 0 {
		return o.even[t.Items()]
	}
	return o.stretched(o.even[t.Items()], f.Stretch(o.variant, d, t.Length()))
}

// runs are what a model runs one after the other of a batch that is being made (serving.Variant.Runs). A task joins a
// run where the elements that are padded for it are worth less than a run of its own.
type runs struct {
	list []run
	sum  float64 // s
	// of the task that with looked at
	at   int // of its run; len(list) for a new one
	next run
	then float64
}

type run struct {
	items  int
	length int32
	factor float64
	takes  float64
}

func (x *runs) reset() { x.list, x.sum = x.list[:0], 0 }

// with returns how long the batch takes with a task more.
func (x *runs) with(o *option, y *task, factor float64) float64 {
	least := 0 // elements
	if o.pads {
		least = serving.RunCost
	}
	x.at, x.next = len(x.list), run{items: y.items, length: y.length, factor: factor}
	for k := range x.list {
		z := &x.list[k]
		padded := y.items * int(z.length-y.length)
		if padded < 0 {
			padded = z.items * int(y.length-z.length)
		}
		if padded <= least {
			least, x.at = padded, k
			x.next = run{items: z.items + y.items, length: max(z.length, y.length), factor: max(z.factor, factor)}
		}
	}
	x.next.takes = o.stretched(o.even[x.next.items], x.next.factor)
	x.then = x.sum + x.next.takes
	if x.at < len(x.list) {
		x.then -= x.list[x.at].takes
	} else if x.at > 0 {
		x.then -= o.overhead
	}
	return x.then
}

// join has the task that with looked at join the batch.
func (x *runs) join() {
	if x.at == len(x.list) {
		x.list = append(x.list, x.next)
	} else {
		x.list[x.at] = x.next
	}
	x.sum = x.then
}
