package board

import (
	"time"

	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
)

// slotsAt returns, for every instance on which something ran when a batch began, how many batches ran there before it,
// and when the first of those was believed to end.
func (b *Board) slotsAt(of *steps.Batch) map[serving.InstanceID]busyAt {
	out := make(map[serving.InstanceID]busyAt)
	add := func(e *steps.Batch) bool {
		if e.Ended <= of.Started {
			return e.Ended == of.Started // there may be more of this instant
		}
		if e.ID != of.ID && (e.Started < of.Started || e.Started == of.Started && e.ID < of.ID) {
			x := out[e.Instance]
			if x.batches++; x.batches == 1 || e.Due() < x.until {
				x.until = e.Due()
			}
			out[e.Instance] = x
		}
		return true
	}
	for _, i := range b.machines.instances {
		for _, e := range i.running {
			add(e)
		}
	}
	b.log.Ended(add)
	return out
}

// busyAt is what ran on an instance at an instant.
type busyAt struct {
	batches int
	until   serving.Time
}

// heldAt reports whether an instance had a variant loaded at an instant, and whether it was loading it.
func (i *instance) heldAt(v serving.VariantID, at serving.Time) (loaded, loading bool) {
	for _, list := range [][]held{i.variants, i.unheld} {
		for _, h := range list {
			if h.variant == v && at < h.until {
				loaded, loading = loaded || h.from <= at, loading || h.from > at
			}
		}
	}
	return loaded, loading && !loaded
}

// at lists the instances of a stage that lived at an instant, without order.
func (m *machines) at(s serving.StageID, at serving.Time) (out []*instance) {
	for _, i := range m.instances { // any order: comparing.before breaks ties by id
		if i.stage == s && i.from <= at {
			out = append(out, i)
		}
	}
	for _, i := range m.gone {
		if i.stage == s && i.from <= at && at < i.until {
			out = append(out, i)
		}
	}
	return out
}

// sized is batches of one size of a variant on one kind of machine.
type sized struct {
	variant serving.VariantID
	device  serving.DeviceTypeID
	items   int32
}

// seenTimes is how many such batches were seen, and what they took in all.
type seenTimes struct {
	took time.Duration
	n    int
}

// seenTimes returns what the batches that are kept took.
func (b *Board) seenTimes() map[sized]seenTimes {
	out := make(map[sized]seenTimes)
	b.log.Ended(func(e *steps.Batch) bool {
		key := sized{e.Variant, e.Device, e.Items}
		x := out[key]
		x.took, x.n = x.took+e.Ended.Sub(e.Started), x.n+1
		out[key] = x
		return true
	})
	return out
}
