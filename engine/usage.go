package engine

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/report"
)

// usage integrates the cost and the load of instances and workers, at the prices in force as time passes.
type usage struct {
	*world
	agenda *agenda
	prices []float64 // by device type, in $/h; nil before one has changed

	total   consumed // of instances, and of spans of workers, that have ended
	workers []workerUse
	shares  []bool // by instance ID - 1, whether it was launched to take turns
}

// consumed is an amount of usage.
type consumed struct {
	busy, slots      serving.Time // slot time
	threads, percent serving.Time // thread time, and time of a per cent of an accelerator
	dollars          float64
}

// workerUse counts the instances of a worker, and among them those that are not on a part of it.
type workerUse struct {
	instances, wholes int
	paidUntil         serving.Time // of the span in which it has instances
	wholeSince        serving.Time

	shared      int // instances that were launched to take turns
	level       int // batches that they may run at once; 0 while there are none
	sharedSince serving.Time
}

// slotTime is the slot time of the instances that take turns, since it was last counted.
func (w *workerUse) slotTime(at serving.Time) serving.Time {
	return (at - w.sharedSince) * serving.Time(w.level)
}

func newUsage(w *world, a *agenda) *usage {
	return &usage{world: w, agenda: a, workers: make([]workerUse, len(w.spec.Workers))}
}

// price returns what a machine of a device type costs now, in $/h. All costs use it.
func (u *usage) price(d serving.DeviceTypeID) float64 {
	if u.prices != nil {
		return u.prices[d]
	}
	return u.spec.DeviceTypes[d].PricePerHour
}

// currentPrices returns a copy of the prices by device type, in $/h; nil before one has changed.
func (u *usage) currentPrices() []float64 { return slices.Clone(u.prices) }

// setPrice sets the price of a device type from now on.
func (u *usage) setPrice(d serving.DeviceTypeID, price float64) {
	if d < 0 || int(d) >= len(u.spec.DeviceTypes) || !(price >= 0) || math.IsInf(price, 0) {
		u.violated(fmt.Errorf("engine: %v $/h for device type %d: the price must be a finite number of at least 0, "+
			"and there are %d types", price, d, len(u.spec.DeviceTypes)))
		return
	}
	if u.price(d) == price {
		return
	}
	for w := range u.workers {
		if id := serving.WorkerID(w); u.workers[w].instances > 0 && u.spec.Workers[w].DeviceType == d {
			u.total.dollars += u.owed(id, u.now)
			u.workers[w].paidUntil = u.now
		}
	}
	if u.prices == nil {
		for _, t := range u.spec.DeviceTypes {
			u.prices = append(u.prices, t.PricePerHour)
		}
	}
	u.prices[d] = price
	u.agenda.changeBasis()
}

// owed is the cost, in $, of a worker with instances between the time until which it is paid for and another.
func (u *usage) owed(w serving.WorkerID, until serving.Time) float64 {
	return u.price(u.spec.Workers[w].DeviceType) * (until - u.workers[w].paidUntil).Seconds() / 3600
}

// launched begins to count an instance.
func (u *usage) launched(i *fleet.Instance) {
	w := &u.workers[i.Worker()]
	if w.instances++; w.instances == 1 {
		w.paidUntil = u.now
	}
	for len(u.shares) < int(i.ID()) {
		u.shares = append(u.shares, false)
	}
	if u.shares[i.ID()-1] = i.TimeShared(); i.TimeShared() {
		u.total.slots += w.slotTime(u.now)
		w.sharedSince, w.shared, w.level = u.now, w.shared+1, max(w.level, i.Built())
	}
	if !u.spec.DeviceTypes[i.DeviceType()].Part {
		if w.wholes++; w.wholes == 1 {
			w.wholeSince = u.now
		}
	}
}

// removed ends the count of an instance that holds no task.
func (u *usage) removed(i *fleet.Instance) {
	u.total.busy += i.Busy()
	w := &u.workers[i.Worker()]
	if !u.shares[i.ID()-1] {
		u.total.slots += (u.now - i.Launched()) * serving.Time(i.Built())
	} else if w.shared--; w.shared == 0 {
		u.total.slots += w.slotTime(u.now)
		w.level = 0
	}
	if w.instances--; w.instances == 0 {
		u.total.dollars += u.owed(i.Worker(), u.now)
	}
	if d := &u.spec.DeviceTypes[i.DeviceType()]; d.Part {
		u.total.hold(d, u.now-i.Launched())
	} else if w.wholes--; w.wholes == 0 {
		u.total.hold(d, u.now-w.wholeSince)
	}
}

// hold counts a part, or a whole machine, over a span.
func (c *consumed) hold(d *serving.DeviceType, span serving.Time) {
	c.threads += span * serving.Time(d.Cores)
	c.percent += span * serving.Time(d.Percent+100*d.Accelerators)
}

// until returns the usage from the start until a time that is not before the present one.
func (u *usage) until(at serving.Time) report.Usage {
	c := u.total
	for _, i := range u.fleet.Live() {
		c.busy += i.Busy()
		for k := range i.Running() {
			c.busy += max(at-i.Batch(k).Started, 0)
		}
		if !u.shares[i.ID()-1] {
			c.slots += (at - i.Launched()) * serving.Time(i.Built())
		}
		if d := &u.spec.DeviceTypes[i.DeviceType()]; d.Part {
			c.hold(d, at-i.Launched())
		}
	}
	for w := range u.workers {
		id := serving.WorkerID(w)
		c.slots += u.workers[w].slotTime(at)
		if u.workers[w].instances > 0 {
			c.dollars += u.owed(id, at)
		}
		if u.workers[w].wholes > 0 {
			c.hold(&u.spec.DeviceTypes[u.spec.Workers[w].DeviceType], at-u.workers[w].wholeSince)
		}
	}
	return report.Usage{
		Dollars: c.dollars, Busy: c.busy.Sub(0), Slots: c.slots.Sub(0), Threads: c.threads.Sub(0),
		Percent: c.percent.Sub(0), Span: at.Sub(0),
	}
}

// check reports a worker whose instances are miscounted.
func (u *usage) check() error {
	counted := make([]workerUse, len(u.workers))
	for _, i := range u.fleet.Live() {
		counted[i.Worker()].instances++
		if !u.spec.DeviceTypes[i.DeviceType()].Part {
			counted[i.Worker()].wholes++
		}
	}
	for w, c := range counted {
		if x := &u.workers[w]; x.instances != c.instances || x.wholes != c.wholes {
			return fmt.Errorf("worker %d is billed for %d instances, %d of them on all of it, it has %d and %d", w,
				x.instances, x.wholes, c.instances, c.wholes)
		}
	}
	return nil
}
