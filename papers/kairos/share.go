package kairos

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// spot is a variant on a machine that an app may share.
type spot struct {
	variant serving.VariantID
	place   int32   // where the machine runs the app already; 0 for nowhere
	carried float64 // queries/s in time, in the time that others leave
	takes   time.Duration
	without float64 // share of the queries that are of sizes too large for the machine
}

// share gives each app for which no machine is left one that others rent. Ours: the paper has one app. Instances of a
// shared machine take turns. The app gets the variant and the machine that carry most of its demand in the time that is
// left, of equal ones the most accurate variant.
func (x *state) share(out *plan.Plan) error {
	spec := x.r.Spec
	busy, memory, rented := make([]float64, len(spec.Workers)), make([]int64, len(spec.Workers)),
		make([]bool, len(spec.Workers))
	for _, i := range out.Instances {
		n := &x.apps[spec.Stages[i.Stage].App]
		rented[i.Worker] = true
		memory[i.Worker] += spec.Variants[i.Variants[0].Variant].MemoryBytes
		if n.market != nil {
			busy[i.Worker] += i.Share * n.rate * x.meanTime(n.market, i.DeviceType(spec)).Seconds()
		}
	}
	for a := range x.apps {
		n := &x.apps[a]
		if !n.sharing {
			continue
		}
		var best *spot
		worker := serving.WorkerID(serving.None)
		for id := range rented {
			if !rented[id] {
				continue
			}
			w := serving.WorkerID(id)
			c, err := x.spotOn(n, w, busy[w], memory[w])
			if err != nil {
				return err
			}
			if c != nil && (best == nil || x.better(c, best, busy[w], busy[worker])) {
				best, worker = c, w
			}
		}
		if best == nil {
			return fmt.Errorf("app %q: no machine is left for it, and none of the %d that others rent serves it "+
				"beside them: raise the budget, or the limits of the device types", spec.Apps[a].Name,
				len(out.Instances))
		}
		if best.place == 0 {
			best.place = x.freePlace(out, worker)
			out.Loads++
		}
		for k := range out.Instances {
			if i := &out.Instances[k]; i.Worker == worker {
				i.TimeShared = true
			}
		}
		device := spec.Workers[worker].DeviceType
		out.Instances = append(out.Instances, plan.Instance{
			Worker: worker, Place: best.place, Stage: n.stage, Slots: 1, Cores: spec.DeviceTypes[device].Cores,
			Share: 1, TimeShared: true,
			Variants: []plan.Variant{{Variant: best.variant, Limit: maxItems(spec, best.variant, device)}},
		})
		n.variant, n.excluded = best.variant, best.without
		out.Capacity[a] = best.carried
		out.Sharing = append(out.Sharing, n.stage)
		busy[worker] += n.rate * best.takes.Seconds()
		memory[worker] += spec.Variants[best.variant].MemoryBytes
	}
	if len(out.Sharing) > 0 {
		out.Sort()
	}
	return nil
}

// better reports whether an app should rather share the machine of c than that of o. busyC and busyO are the parts of
// their time that others take.
func (x *state) better(c, o *spot, busyC, busyO float64) bool {
	switch least := rounding * max(c.carried, o.carried); {
	case c.carried > o.carried+least:
		return true
	case c.carried < o.carried-least:
		return false
	case (c.place > 0) != (o.place > 0):
		return c.place > 0
	}
	if a, b := x.r.Spec.Variants[c.variant].Accuracy, x.r.Spec.Variants[o.variant].Accuracy; a != b {
		return a > b
	}
	return busyC < busyO
}

// spotOn returns the best variant of an app on a machine; nil where none can run beside what is there.
func (x *state) spotOn(n *appRent, w serving.WorkerID, busy float64, memory int64) (best *spot, err error) {
	spec, device := x.r.Spec, x.r.Spec.Workers[w].DeviceType
	room := spec.DeviceTypes[device].MemoryBytes
	asked := capacity.StageDemands(spec, x.r.Rates)[n.stage]
	for _, v := range spec.Stages[n.stage].Variants {
		y := &spec.Variants[v]
		if x.broken[v] || y.Retired || spec.BelowFloor(v) || maxItems(spec, v, device) == 0 ||
			room > 0 && memory+y.MemoryBytes+y.ItemBytes > room {
			continue
		}
		m, err := NewMarket(x.believed, spec, v, x.r.Mix(n.app), x.r.Prices, asked.Budget)
		if err != nil {
			return nil, err
		}
		m.Types = slices.DeleteFunc(m.Types, func(t Type) bool { return t.Device != device })
		cut, without := m.Servable(x.o.Fluid, 0)
		if cut == nil {
			continue
		}
		c := &spot{variant: v, place: x.runsAt(n.stage, w), takes: x.meanTime(cut, device), without: without}
		c.carried = min(n.rate*(1-without), max(1-busy, 0)/c.takes.Seconds())
		if best == nil || x.better(c, best, 0, 0) {
			best = c
		}
	}
	return best, nil
}

// meanTime returns the mean run time of a query of a market on a type.
func (x *state) meanTime(m *Market, d serving.DeviceTypeID) time.Duration {
	sum := 0.0
	for _, t := range m.Types {
		if t.Device != d {
			continue
		}
		for c, took := range t.Latency {
			_, share := m.Mix.Class(c)
			sum += share * float64(min(took, m.Within))
		}
	}
	return time.Duration(sum)
}

// runsAt returns the place beyond the first at which a stage runs on a worker by the snapshot; 0 for none.
func (x *state) runsAt(s serving.StageID, w serving.WorkerID) int32 {
	for _, i := range capacity.Reusable(x.r.Snapshot) {
		if i.Key.Worker == w && i.Key.Ordinal > 1 && i.Stage == s {
			return i.Key.Ordinal
		}
	}
	return 0
}

// freePlace returns a place beyond the first that nothing has on a worker, by the plan or by the snapshot.
func (x *state) freePlace(out *plan.Plan, w serving.WorkerID) int32 {
	taken := func(k fleet.Key) bool {
		return slices.ContainsFunc(out.Instances, func(i plan.Instance) bool {
			return i.Worker == w && i.Place == k.Ordinal
		}) || slices.ContainsFunc(capacity.Reusable(x.r.Snapshot), func(i fleet.InstanceSnapshot) bool {
			return i.Key == k
		})
	}
	at := fleet.Key{Worker: w, Ordinal: 2}
	for taken(at) {
		at.Ordinal++
	}
	return at.Ordinal
}
