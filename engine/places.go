package engine

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// places records which instance stands for which place of the plan in force, and computes what fits on a worker: its
// memory, and what is cut into parts, is limited.
type places struct {
	*world
	force    *inForce
	holders  map[fleet.Key]*fleet.Instance // the live instance that stands for a place of the plan
	byWorker [][]*fleet.Instance           // live instances, oldest first
}

func newPlaces(w *world, p *inForce) *places {
	return &places{
		world: w, force: p, holders: make(map[fleet.Key]*fleet.Instance),
		byWorker: make([][]*fleet.Instance, len(w.spec.Workers)),
	}
}

// add records an instance that was launched for its place.
func (p *places) add(i *fleet.Instance) {
	p.holders[i.Key()] = i
	p.byWorker[i.Worker()] = append(p.byWorker[i.Worker()], i)
}

// remove takes out an instance that is no longer alive.
func (p *places) remove(i *fleet.Instance) {
	if p.holds(i) {
		delete(p.holders, i.Key())
	}
	w := &p.byWorker[i.Worker()]
	*w = slices.DeleteFunc(*w, func(o *fleet.Instance) bool { return o == i })
}

// holds reports whether an instance stands for its place in the plan.
func (p *places) holds(i *fleet.Instance) bool { return p.holders[i.Key()] == i }

// assign finds, for every place of a new plan, the running instance that stands for it: one that can become what the
// plan wants without a new launch.
func (p *places) assign() {
	clear(p.holders)
	for _, i := range p.fleet.Live() {
		want, ok := p.force.wants[i.Key()]
		if !ok || i.State() == fleet.Draining || !p.suits(i, &want) {
			continue
		}
		if h := p.holders[i.Key()]; h == nil || h.State() != fleet.Ready {
			p.holders[i.Key()] = i
		}
	}
}

// suits reports whether an instance can become what the plan wants at a place on its worker, apart from variants.
func (p *places) suits(i *fleet.Instance, want *plan.Instance) bool {
	return want.Stage == i.Stage() && want.Slots <= i.Built() && want.Cores == i.Cores() &&
		want.DeviceType(p.spec) == i.DeviceType() && want.Accelerator == i.Accelerator()
}

// hasPredecessor reports whether an earlier instance still lives at i's place.
func (p *places) hasPredecessor(i *fleet.Instance) bool {
	for _, o := range p.byWorker[i.Worker()] {
		if o.ID() < i.ID() && o.Key() == i.Key() {
			return true
		}
	}
	return false
}

// vacating reports whether an instance, or one of its variants, is about to release its room.
func (p *places) vacating(i *fleet.Instance) bool {
	if !p.holds(i) {
		return true
	}
	for k := range i.Variants() {
		if l := i.Variant(k); !l.Delayed && !p.force.has(i.Key(), l.Variant) {
			return true
		}
	}
	return false
}

// loadWaits reports whether the load of a variant waits for memory on a worker.
func (p *places) loadWaits(w serving.WorkerID) bool {
	for _, i := range p.byWorker[w] {
		for k := range i.Variants() {
			if i.Variant(k).Delayed {
				return true
			}
		}
	}
	return false
}

// fits reports whether an instance can be launched on a worker now. When nothing on the worker is about to release
// room, it is true in any case: the plan has oversubscribed the worker, and waiting would not help.
func (p *places) fits(w serving.WorkerID, want *plan.Instance) bool {
	d := want.DeviceType(p.spec)
	worker := &p.spec.DeviceTypes[p.spec.Workers[w].DeviceType]
	more := p.takes(d, p.need(want.Variants...))
	memory, threads, percent := more, 0, 0
	vacating := false
	for _, i := range p.byWorker[w] {
		memory += p.takes(i.DeviceType(), p.loaded(i))
		vacating = vacating || p.vacating(i)
		if x := &p.spec.DeviceTypes[i.DeviceType()]; x.Part {
			threads += x.Cores
			if i.Accelerator() == want.Accelerator {
				percent += x.Percent
			}
		}
	}
	if !vacating {
		return true
	}
	if x := &p.spec.DeviceTypes[d]; x.Part && (threads+x.Cores > worker.Cores || x.Percent > 0 &&
		percent+x.Percent > 100) {
		return false
	}
	return more <= 0 || worker.MemoryBytes <= 0 || memory <= worker.MemoryBytes
}

// fitsOn reports whether instance i can load one more variant now, by the rule of fits: in the memory of its part,
// where the part has its own, or of its worker.
func (p *places) fitsOn(i *fleet.Instance, v plan.Variant) bool {
	more := p.need(v)
	if d := &p.spec.DeviceTypes[i.DeviceType()]; d.Part && d.MemoryBytes > 0 {
		return more <= 0 || more+p.loaded(i) <= d.MemoryBytes || !p.vacating(i)
	}
	limit := p.spec.DeviceTypes[p.spec.Workers[i.Worker()].DeviceType].MemoryBytes
	if limit <= 0 || more <= 0 {
		return true
	}
	vacating := false
	for _, o := range p.byWorker[i.Worker()] {
		more += p.takes(o.DeviceType(), p.loaded(o))
		vacating = vacating || p.vacating(o)
	}
	return more <= limit || !vacating
}

// need is the memory, in bytes, that variants take with their largest batches, as far as known.
func (p *places) need(variants ...plan.Variant) int64 {
	n := int64(0)
	for _, v := range variants {
		x := &p.spec.Variants[v.Variant]
		n += x.MemoryBytes + int64(v.Limit)*x.ItemBytes
	}
	return n
}

// loaded is the memory, in bytes, that the variants of an instance take.
func (p *places) loaded(i *fleet.Instance) (n int64) {
	for k := range i.Variants() {
		if l := i.Variant(k); !l.Delayed {
			n += p.need(plan.Variant{Variant: l.Variant, Limit: l.Limit})
		}
	}
	return n
}

// takes is the memory, in bytes, that an instance takes of its worker: all of its part's, where a part has memory of
// its own.
func (p *places) takes(d serving.DeviceTypeID, variants int64) int64 {
	if x := &p.spec.DeviceTypes[d]; x.Part && x.MemoryBytes > 0 {
		return x.MemoryBytes
	}
	return variants
}

// check reports a place with the wrong instance, or one that two instances serve.
func (p *places) check() error {
	for k, h := range p.holders {
		if h.Key() != k {
			return fmt.Errorf("instance %d stands for place %v and is at %v", h.ID(), k, h.Key())
		}
	}
	at := make(map[fleet.Key]*fleet.Instance)
	listed := 0
	for _, i := range p.fleet.Live() {
		if !slices.Contains(p.byWorker[i.Worker()], i) {
			return fmt.Errorf("instance %d is not listed on its worker %d", i.ID(), i.Worker())
		}
		listed++
		if other := at[i.Key()]; other != nil && i.State() == fleet.Ready && other.State() == fleet.Ready {
			return fmt.Errorf("instances %d and %d are both ready at place %v", other.ID(), i.ID(), i.Key())
		} else if other == nil || i.State() == fleet.Ready {
			at[i.Key()] = i
		}
	}
	for _, list := range p.byWorker {
		listed -= len(list)
	}
	if listed != 0 {
		return fmt.Errorf("%d instances more live than are listed on workers", listed)
	}
	return nil
}
