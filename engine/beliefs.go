package engine

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// What plans are made from besides the demand, and how it changes: latencies that are learned, sizes of queries,
// prices.

const (
	// counted is how many queries of an app are seen before their sizes count for more than those that were expected.
	counted = 100
	// tryEvery is how many queries are given up as hopeless, while instances are idle, before one is run all the same.
	tryEvery = 32
)

// Asks returns the question to a planner that a RequestPlan decision stands for.
func (d *Decision) Asks() plan.Request {
	spec := d.Spec
	if d.Fans != nil {
		spec = spec.WithFanOuts(d.Fans)
	}
	return plan.Request{
		Spec: spec, Snapshot: d.Snapshot, Rates: d.Rates, Mixes: d.Mixes, Beliefs: d.Beliefs, Prices: d.Prices,
	}
}

// believe takes up a change of what is believed of latency. Changes that do not move the learner's epoch are left: when
// queries are dropped is off by no more than such a change until then.
func (e *Engine) believe() {
	if e.learner == nil || e.learner.Epoch() == e.epoch {
		return
	}
	e.epoch = e.learner.Epoch()
	e.shifted, e.scaleDirty = e.now, true
	e.retime()
}

// retime recomputes what follows from latencies and from what later stages need, and looks at everything again.
func (e *Engine) retime() {
	e.needs = e.leastTails()
	if e.tails = e.needs; e.plan != nil && e.plan.Budgets != nil {
		e.tails = e.budgeted()
	}
	e.fleet.Believe()
	for s := range e.spec.Stages {
		e.timeStage(serving.StageID(s))
		e.stages.add(s)
	}
	for _, i := range e.fleet.Live() {
		e.timeInstance(i)
		e.touch(i)
	}
}

// tries tells whether a query that is believed to be hopeless on arrival is run all the same. Where latency is learned,
// or a stage was seen to balloon, a belief that is too long would never be corrected: nothing would run that could
// correct it. So now and then one may try, if an instance stands idle that could take it.
func (e *Engine) tries(ref fleet.Ref) bool {
	t := e.fleet.Task(ref)
	if !e.suspects(t.Stage) || t.Deadline <= e.now {
		return false
	}
	for _, i := range e.fleet.Ready(t.Stage) {
		if i.Idle() && e.fleet.CanServe(i, t) {
			if e.hopeless++; e.hopeless%tryEvery == 0 {
				e.fleet.Try(ref)
				return true
			}
			break
		}
	}
	return false
}

// reprice takes up a new price of a device type.
func (e *Engine) reprice(in *Input) {
	d := int(in.DeviceType)
	if d < 0 || d >= len(e.spec.DeviceTypes) || !(in.Price >= 0) || math.IsInf(in.Price, 0) {
		e.blame(fmt.Errorf("engine: %v $/h for device type %d: the price must be a finite number of at least 0, and "+
			"there are %d types", in.Price, d, len(e.spec.DeviceTypes)))
		return
	}
	if e.Price(in.DeviceType) == in.Price {
		return
	}
	if e.prices == nil {
		for _, t := range e.spec.DeviceTypes {
			e.prices = append(e.prices, t.PricePerHour)
		}
	}
	e.prices[d] = in.Price
	e.shifted, e.scaleDirty = e.now, true
}

// Price returns what a machine of a device type costs now, in $/h.
func (e *Engine) Price(d serving.DeviceTypeID) float64 {
	if e.prices != nil {
		return e.prices[d]
	}
	return e.spec.DeviceTypes[d].PricePerHour
}

// mixes returns by app the sizes of queries that a plan is to be made for.
func (e *Engine) mixes() []serving.Mix {
	out := make([]serving.Mix, len(e.spec.Apps))
	for a := range out {
		if out[a] = e.spec.Apps[a].Mix; e.monitor.Sized(serving.AppID(a)) >= counted {
			out[a] = e.monitor.Mix(serving.AppID(a))
		}
	}
	return out
}
