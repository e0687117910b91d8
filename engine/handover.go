package engine

import (
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// handover replaces one plan by the next without a gap. Three rules apart from each other:
//
//   - A stage keeps an instance that the plan no longer wants until none of its wanted ones is still loading.
//   - A worker runs one instance of a place at a time. A successor loads beside its predecessor, then waits
//     (standby) until that one has finished its last batch, since the two would share a machine that was profiled
//     for one.
//   - Memory of a worker, and what is cut into parts, is limited. Where predecessor and successor do not fit
//     together, the old one stops first (break before make).
type handover struct {
	*world
	agenda    *agenda
	force     *inForce
	queries   *queries
	backoff   *backoff
	instances *instances
	places    *places
	warm      *keepWarm
	lifecycle *lifecycle

	delayed  []delayedLaunch
	loading  []bool // by stage, within retire: an instance that the plan wants is still loading
	standIns bool   // instances of an older plan still serve for ones that are launching
}

// delayedLaunch is a launch that waits for room on its worker.
type delayedLaunch struct {
	key fleet.Key
	why Reason
}

// adopt changes the fleet to the plan in force: it adjusts running instances that the plan names, launches missing
// ones, and drains the others once their replacements are ready.
func (h *handover) adopt() {
	h.places.assign()
	h.delayed = h.delayed[:0]
	h.backoff.keep(func(k fleet.Key) bool {
		_, wanted := h.force.wants[k]
		return wanted && h.places.holders[k] == nil
	})
	for _, k := range h.force.places {
		want := h.force.wants[k]
		if h.places.holders[k] == nil {
			h.warm.resumeAt(k, &want)
		}
		if i := h.places.holders[k]; i != nil {
			h.adjust(i, &want)
		}
	}
	for _, k := range h.force.places {
		if h.places.holders[k] == nil && !h.backoff.waits(k) {
			h.launch(k, Planned)
		}
	}
	h.standIns = true
	h.retire()
}

// launch brings up an instance at a place, or delays that until there is room on the worker.
func (h *handover) launch(k fleet.Key, why Reason) {
	want := h.force.wants[k]
	h.warm.evictAt(k)
	if !h.warm.evictUntil(k.Worker, func() bool { return h.places.fits(k.Worker, &want) }) {
		h.delayed = append(h.delayed, delayedLaunch{k, why})
		return
	}
	h.instances.launch(k, &want, why)
}

// launchWaits reports whether a launch waits for room on a worker.
func (h *handover) launchWaits(w serving.WorkerID) bool {
	return slices.ContainsFunc(h.delayed, func(d delayedLaunch) bool { return d.key.Worker == w })
}

// adjust changes a running instance to what the plan wants. The variant in use serves until its successor is warm,
// unless there is no memory for both.
func (h *handover) adjust(i *fleet.Instance, want *plan.Instance) {
	h.fleet.SetTerms(i, terms(want))
	h.agenda.touchSharing(i)
	h.fleet.UnwantAll(i)
	for k := i.Variants() - 1; k >= 0; k-- {
		if l := i.Variant(k); l.Delayed && !h.force.has(i.Key(), l.Variant) {
			h.fleet.RemoveVariant(i, k)
		}
	}
	delayed := false
	for _, v := range want.Variants {
		k := i.Find(v.Variant)
		if k >= 0 {
			h.fleet.Want(i, k)
			h.fleet.SetLimit(i, k, v.Limit)
		} else {
			k = h.addVariant(i, v)
		}
		delayed = delayed || i.Variant(k).Delayed
	}
	if k := i.Find(want.Variants[0].Variant); i.Variant(k).Warm {
		h.fleet.SetActive(i, k)
	} else if i.Active() >= 0 && !delayed {
		h.fleet.Want(i, i.Active())
	}
	h.fleet.Refresh(i)
	h.instances.unloadUnwanted(i)
	h.agenda.touch(i)
}

// addVariant makes an instance load one more variant, at once or when there is memory for it, and returns its index.
func (h *handover) addVariant(i *fleet.Instance, v plan.Variant) int {
	k := i.Variants()
	fits := h.warm.evictUntil(i.Worker(), func() bool { return h.places.fitsOn(i, v) })
	h.fleet.AddVariant(i, fleet.Loaded{Variant: v.Variant, Limit: v.Limit, Wanted: true, Delayed: true})
	if fits {
		h.instances.load(i, k)
	}
	return k
}

// retire drains instances that the plan does not want: those of a stage once none of its wanted ones is loading, those
// of a closed app when its queries have ended, those on a worker whose memory is waited for at once. It does nothing
// without standIns.
func (h *handover) retire() {
	if !h.standIns {
		return
	}
	h.loading = lengthened(h.loading[:0], len(h.spec.Stages))
	for _, i := range h.fleet.Live() {
		if i.State() == fleet.Launching && !i.Standby() && h.places.holds(i) {
			h.loading[i.Stage()] = true
		}
	}
	h.standIns = false
	for _, i := range slices.Clone(h.fleet.Live()) {
		if i.State() == fleet.Draining || h.places.holds(i) {
			continue
		}
		launchWaits := h.launchWaits(i.Worker())
		if (h.loading[i.Stage()] || h.queries.isClosing(i.Stage())) && !launchWaits {
			h.standIns = true
			continue
		}
		h.fleet.Drain(i)
		h.queries.sendAllBack(i)
		h.agenda.touch(i)
		if launchWaits || h.places.loadWaits(i.Worker()) || !h.warm.keep(i) {
			h.instances.stopIfDone(i)
		}
	}
}

// relaunch launches instances at the places whose back-off is over, and loads what those that are there lack.
func (h *handover) relaunch() {
	for k, ok := h.backoff.due(); ok; k, ok = h.backoff.due() {
		if i := h.places.holders[k]; i == nil {
			h.launch(k, Relaunched)
		} else if want, ok := h.force.wants[k]; ok {
			h.adjust(i, &want)
		}
	}
}

// next returns when the next back-off ends; serving.Never without any.
func (h *handover) next() serving.Time { return h.backoff.next() }

// proceed continues launches and loads that waited for memory or a predecessor, on the workers that released something.
func (h *handover) proceed() {
	for at := 0; at < len(h.agenda.freed.list); at++ {
		id := h.agenda.freed.list[at]
		h.agenda.freed.taken(id)
		h.proceedOn(serving.WorkerID(id))
	}
	h.agenda.freed.empty()
}

func (h *handover) proceedOn(w serving.WorkerID) {
	for _, i := range slices.Clone(h.places.byWorker[w]) {
		if i.State() == fleet.Draining {
			continue // it stops when its batches have ended
		}
		for k := range i.Variants() {
			if l := i.Variant(k); l.Delayed && h.places.fitsOn(i, plan.Variant{Variant: l.Variant, Limit: l.Limit}) {
				h.instances.load(i, k)
			}
		}
		if i.Standby() && !h.places.hasPredecessor(i) {
			h.lifecycle.serve(i)
		}
	}
	waiting := h.delayed
	h.delayed = nil
	for _, d := range waiting {
		switch {
		case d.key.Worker != w:
			h.delayed = append(h.delayed, d)
		case h.places.holders[d.key] == nil:
			h.launch(d.key, d.why)
		}
	}
}
