package capacity

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// ShareLeftOut gives every stage that a plan leaves with nothing an instance that shares a worker with what is there,
// for planners that give a worker to one variant or cut it into parts: they serve only as many apps as there are
// workers, and users have more. It notes the stages in p.Sharing. A stage that no usable worker can serve beside what
// is there stays without one: parts of machines are not shared.
//
// The worker is the one with most time left by the plan's shares, or the one that serves the stage so already. The
// variant is the most accurate one that carries the demand in that time, or else the fastest.
func (r BatchRule) ShareLeftOut(q *plan.Request, believed profile.Profile, p *plan.Plan, may Sharers) {
	x := &sharing{rule: r, spec: q.Spec, believed: believed, plan: p, asked: StageDemands(q.Spec, q.Rates), may: may}
	x.down, x.broken = Unusable(q.Spec, q.Snapshot)
	has := make([]bool, len(q.Spec.Stages))
	for _, i := range p.Instances {
		has[i.Stage] = true
	}
	for s := range has {
		id := serving.StageID(s)
		if app := &q.Spec.Apps[q.Spec.Stages[s].App]; has[s] || app.Closed || may.Stage != nil && !may.Stage(id) {
			continue
		}
		if x.busy == nil {
			x.measure()
		}
		if c := x.choose(id, q.Snapshot); c != nil {
			x.add(id, c, q.Snapshot)
		}
	}
	if len(p.Sharing) > 0 {
		p.Sort()
		p.Forecast.CostPerHour = q.CostPerHour(p.Instances)
	}
}

// Sharers says which stages may share which workers. The zero value means all of both.
type Sharers struct {
	Stage  func(serving.StageID) bool
	Worker func(serving.WorkerID) bool
}

// sharing is a plan that is being completed.
type sharing struct {
	rule         BatchRule
	spec         *serving.Spec
	believed     profile.Profile
	plan         *plan.Plan
	may          Sharers
	asked        []StageDemand // by StageID
	down, broken []bool
	busy         []float64 // by WorkerID: the part of its time that the plan's instances take
	memory       []int64   // by WorkerID: bytes in use
	cut          []bool    // by WorkerID: instances there have parts of it
}

// spot is a variant on a worker.
type spot struct {
	worker  serving.WorkerID
	variant serving.VariantID
	limit   int
	rate    float64 // items/s, with the worker to itself
}

// measure adds up what the plan's instances take of their workers.
func (x *sharing) measure() {
	n := len(x.spec.Workers)
	x.busy, x.memory, x.cut = make([]float64, n), make([]int64, n), make([]bool, n)
	for n := range x.plan.Instances {
		i := &x.plan.Instances[n]
		active := i.Variants[0]
		run := x.believed.Latency(active.Variant, i.DeviceType(x.spec), active.Limit, i.Slots)
		x.busy[i.Worker] += i.Share * x.asked[i.Stage].Rate * run.Seconds() / float64(active.Limit*i.Slots)
		x.cut[i.Worker] = x.cut[i.Worker] || i.Part > 0
		for _, v := range i.Variants {
			x.memory[i.Worker] += x.need(v.Variant, v.Limit)
		}
	}
}

func (x *sharing) need(v serving.VariantID, limit int) int64 {
	return x.spec.Variants[v].MemoryBytes + int64(limit)*x.spec.Variants[v].ItemBytes
}

// choose finds the worker and the variant for a stage; nil where there are none.
func (x *sharing) choose(s serving.StageID, snapshot *fleet.Snapshot) *spot {
	var best *spot
	least := math.Inf(1)
	for w := range x.spec.Workers {
		if x.cut[w] || x.may.Worker != nil && !x.may.Worker(serving.WorkerID(w)) {
			continue
		}
		c := x.on(s, serving.WorkerID(w))
		if c == nil {
			continue
		}
		busy := x.busy[w] + x.asked[s].Rate/c.rate
		if x.shares(s, serving.WorkerID(w), snapshot) != 0 && busy <= 1 {
			return c
		}
		if busy < least {
			best, least = c, busy
		}
	}
	return best
}

// shares returns the place at which a worker serves a stage already; 0 for none.
func (x *sharing) shares(s serving.StageID, w serving.WorkerID, snapshot *fleet.Snapshot) int32 {
	for _, i := range Reusable(snapshot) {
		if i.Key.Worker == w && i.Stage == s && i.Cores == 0 && i.DeviceType == x.spec.Workers[w].DeviceType &&
			!x.taken(i.Key) {
			return i.Key.Ordinal
		}
	}
	return 0
}

func (x *sharing) taken(k fleet.Key) bool {
	return slices.ContainsFunc(x.plan.Instances, func(i plan.Instance) bool {
		return i.Worker == k.Worker && max(i.Place, 1) == k.Ordinal
	})
}

// on chooses the variant of a stage on a worker; nil where none can run beside what is there.
func (x *sharing) on(s serving.StageID, w serving.WorkerID) *spot {
	d := x.spec.Workers[w].DeviceType
	room := x.spec.DeviceTypes[d].MemoryBytes
	var best *spot
	enough := func(c *spot) bool { return x.busy[w]+x.asked[s].Rate/c.rate <= 1 }
	for _, v := range x.spec.Stages[s].Variants {
		if x.down[w] || x.broken[v] || x.spec.Variants[v].Retired {
			continue
		}
		limit, rate := x.rule.Capacity(x.believed, x.spec, v, d, x.asked[s].Budget)
		if limit == 0 || room > 0 && x.memory[w]+x.need(v, limit) > room {
			continue
		}
		c := &spot{w, v, limit, rate}
		switch {
		case best == nil, enough(c) && !enough(best):
			best = c
		case enough(c) && x.spec.Variants[v].Accuracy > x.spec.Variants[best.variant].Accuracy:
			best = c
		case !enough(c) && !enough(best) && c.rate > best.rate:
			best = c
		}
	}
	return best
}

// add puts an instance into the plan. It takes turns with the others on its worker.
func (x *sharing) add(s serving.StageID, c *spot, snapshot *fleet.Snapshot) {
	place := x.shares(s, c.worker, snapshot)
	if place == 0 {
		x.plan.Loads++
		place = 2
		for x.taken(fleet.Key{Worker: c.worker, Ordinal: place}) || x.runs(snapshot, c.worker, place) {
			place++
		}
	}
	run := x.believed.Latency(c.variant, x.spec.Workers[c.worker].DeviceType, c.limit, 1)
	for n := range x.plan.Instances {
		if i := &x.plan.Instances[n]; i.Worker == c.worker {
			i.TimeShared = true
		}
	}
	x.plan.Instances = append(x.plan.Instances, plan.Instance{
		Worker: c.worker, Place: place, Stage: s, Slots: 1, Share: 1, TimeShared: true,
		Variants:     []plan.Variant{{Variant: c.variant, Limit: c.limit}},
		BatchTimeout: max((x.asked[s].Budget-run)/holdPart, time.Duration(1)),
	})
	x.plan.Sharing = append(x.plan.Sharing, s)
	free := max(1-x.busy[c.worker], 0)
	x.busy[c.worker] += x.asked[s].Rate / c.rate
	x.memory[c.worker] += x.need(c.variant, c.limit)
	x.credit(s, min(free*c.rate, x.asked[s].Rate))
}

// holdPart is the part of the time left in which a batch fills: the rest is for batches of others on the worker.
const holdPart = 2

// runs tells whether anything runs at a place by a snapshot.
func (x *sharing) runs(snapshot *fleet.Snapshot, w serving.WorkerID, place int32) bool {
	return snapshot != nil && slices.ContainsFunc(snapshot.Instances, func(i fleet.InstanceSnapshot) bool {
		return i.Key == fleet.Key{Worker: w, Ordinal: place}
	})
}

// credit notes what an app of one stage is now served, in items/s. Of other apps the planner's word stands.
func (x *sharing) credit(s serving.StageID, served float64) {
	a := x.asked[s].App
	if len(x.spec.Apps[a].Stages) > 1 || x.plan.Capacity == nil {
		return
	}
	x.plan.Capacity[a] = served
	if x.plan.Shed != nil && x.plan.Demand != nil {
		x.plan.Shed[a] = max(min(x.plan.Shed[a], x.asked[s].Rate-served), 0)
	}
}
