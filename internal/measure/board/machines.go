package board

import (
	"maps"
	"slices"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// machines mirrors what the engine's decisions make of the workers.
type machines struct {
	spec      *serving.Spec
	prices    []float64 // by DeviceTypeID, in $/h
	workers   []worker
	instances map[serving.InstanceID]*instance
	version   uint64             // rises with every change
	turns     map[fleet.Key]bool // instances of the latest plan that take turns on their worker
	gone      []*instance        // the latest that were given back, oldest first

	// kept up to date, so that time is counted without a look at the workers
	dollars float64 // per hour, of the workers that hold something
	slots   int     // of ready instances
	batches int     // that run
}

// worker is a machine and what is on it.
type worker struct {
	instances []*instance
	changed   uint64       // version of its last change
	held      uint64       // version of the last change of what it holds
	busy      serving.Time // slot time of batches that have ended, and of running ones up to seen
	slots     int
	events    []Event // the latest ones, oldest first
}

const (
	// mostEvents is how many events of a worker are kept.
	mostEvents = 6
	// mostGone is how many instances are remembered that were given back, mostUnheld how many variants that one of them
	// no longer holds: for questions about earlier batches.
	mostGone, mostUnheld = 512, 16
)

// Event is something that happened to a worker, and why.
type Event struct {
	AtS  float64 `json:"at_s"`
	What string  `json:"what"`
	Why  string  `json:"why"`
}

// instance is one instance on a worker.
type instance struct {
	id       serving.InstanceID
	worker   serving.WorkerID
	device   serving.DeviceTypeID // of the part of the worker that it has
	stage    serving.StageID
	slots    int
	state    string
	turns    bool // with the others of its worker: their slots are in common
	from     serving.Time
	until    serving.Time // serving.Never while it lives
	variants []held
	unheld   []held // the latest that it no longer holds
	running  []*steps.Batch
}

// held is a variant of an instance.
type held struct {
	variant serving.VariantID
	loading bool
	from    serving.Time // loaded; serving.Never before
	until   serving.Time // no longer held; serving.Never while it is
}

// States of an instance, as JSON shows them.
const (
	loadingState = "loading"
	readyState   = "ready"
	keptState    = "kept"
	failedState  = "failed"
)

func (m *machines) grow(spec *serving.Spec) {
	m.spec = spec
	if m.instances == nil {
		m.instances = make(map[serving.InstanceID]*instance)
	}
	m.workers = extended(m.workers, len(spec.Workers))
	for d := len(m.prices); d < len(spec.DeviceTypes); d++ {
		m.prices = append(m.prices, spec.DeviceTypes[d].PricePerHour)
	}
}

// forget drops the instances that are gone, where their stage or a variant of theirs means another now.
func (m *machines) forget(fresh *serving.Fresh) {
	stale := func(h held) bool { return slices.Contains(fresh.Variants, h.variant) }
	m.gone = slices.DeleteFunc(m.gone, func(i *instance) bool {
		return slices.Contains(fresh.Stages, i.stage) || slices.ContainsFunc(i.variants, stale)
	})
	for _, list := range [][]*instance{m.gone, slices.Collect(maps.Values(m.instances))} {
		for _, i := range list {
			i.unheld = slices.DeleteFunc(i.unheld, stale)
		}
	}
}

func (m *machines) price(w serving.WorkerID) float64 { return m.prices[m.spec.Workers[w].DeviceType] }

func (m *machines) priced(d serving.DeviceTypeID, price float64) {
	for w := range m.workers {
		if len(m.workers[w].instances) > 0 && m.spec.Workers[w].DeviceType == d {
			m.dollars += price - m.prices[d]
		}
	}
	m.prices[d] = price
}

// spend counts the cost and the slot time of a span.
func (m *machines) spend(from, to serving.Time, b *block) {
	s := to.Sub(from).Seconds()
	b.dollars += m.dollars * s / 3600
	b.busy += float64(min(m.batches, m.slots)) * s
	b.slots += float64(m.slots) * s
}

// planned takes a plan: its instances are launched in the same step.
func (m *machines) planned(p *plan.Plan) {
	m.turns = make(map[fleet.Key]bool)
	position := make(map[serving.WorkerID]int32)
	for k := range p.Instances {
		i := &p.Instances[k]
		position[i.Worker]++
		place := i.Place
		if place == 0 {
			place = position[i.Worker]
		}
		if i.TimeShared {
			m.turns[fleet.Key{Worker: i.Worker, Ordinal: place}] = true
		}
	}
}

func (m *machines) touch(w serving.WorkerID) *worker {
	m.version++
	m.workers[w].changed, m.workers[w].held = m.version, m.version
	return &m.workers[w]
}

// runs marks a worker on which a batch begins or ends.
func (m *machines) runs(w serving.WorkerID) {
	m.version++
	m.workers[w].changed = m.version
}

func (w *worker) note(at serving.Time, what, why string) {
	if len(w.events) == mostEvents {
		w.events = append(w.events[:0], w.events[1:]...)
	}
	w.events = append(w.events, Event{AtS: at.Seconds(), What: what, Why: why})
}

func (m *machines) launched(now serving.Time, d *engine.Decision) {
	i := &instance{
		id: d.Instance, worker: d.Launch.Key.Worker, stage: d.Launch.Stage, slots: max(1, d.Launch.Slots),
		state: loadingState, turns: m.turns[d.Launch.Key], device: d.Launch.DeviceType, from: now, until: serving.Never,
	}
	for _, v := range d.Launch.Variants {
		i.variants = append(i.variants, held{variant: v, loading: true, from: serving.Never, until: serving.Never})
	}
	m.instances[d.Instance] = i
	w := m.touch(i.worker)
	if len(w.instances) == 0 {
		m.dollars += m.price(i.worker)
	}
	w.instances = append(w.instances, i)
	w.note(now, "starts "+m.spec.Stages[i.stage].Name, d.Reason.String())
}

func (m *machines) stopped(now serving.Time, id serving.InstanceID) {
	i := m.instances[id]
	if i == nil {
		return
	}
	delete(m.instances, id)
	i.until = now
	if len(m.gone) == mostGone {
		m.gone = append(m.gone[:0], m.gone[1:]...)
	}
	m.gone = append(m.gone, i)
	w := m.touch(i.worker)
	for _, b := range i.running {
		w.busy += now - b.Started
		m.batches--
	}
	i.running = nil
	m.ready(i, false)
	if at := slices.Index(w.instances, i); at >= 0 {
		w.instances = slices.Delete(w.instances, at, at+1)
	}
	if len(w.instances) == 0 {
		m.dollars -= m.price(i.worker)
		if len(m.instances) == 0 {
			m.dollars = 0 // no rounding is left behind
		}
	}
	w.note(now, "gives "+m.spec.Stages[i.stage].Name+" back", "")
}

// ready counts the slots of an instance that turns ready, or no longer is.
func (m *machines) ready(i *instance, is bool) {
	was := i.state == readyState || i.state == keptState
	if is == was {
		return
	}
	i.state = loadingState
	if is {
		i.state = readyState
	}
	w := &m.workers[i.worker]
	m.slots -= w.slots
	w.slots = 0
	common := 0
	for _, x := range w.instances {
		switch {
		case x.state != readyState && x.state != keptState:
		case x.turns:
			common = max(common, x.slots)
		default:
			w.slots += x.slots
		}
	}
	w.slots += common
	m.slots += w.slots
}

func (m *machines) changed(now serving.Time, x *engine.Input) {
	i := m.instances[x.Instance]
	if i == nil {
		return
	}
	w := m.touch(i.worker)
	switch x.Change {
	case engine.VariantReady:
		i.loaded(now, x.Variant)
		m.ready(i, true)
	case engine.LoadFailed:
		i.variants = slices.DeleteFunc(i.variants, func(h held) bool { return h.variant == x.Variant })
		w.note(now, m.variant(x.Variant)+" failed to load", "the log of the server has the reason")
		if len(i.variants) == 0 {
			m.ready(i, false)
			i.state = failedState
		}
	case engine.Lost:
		w.note(now, m.spec.Stages[i.stage].Name+" is lost", "its machine or connection failed")
	}
}

func (m *machines) variant(v serving.VariantID) string {
	if v < 0 || int(v) >= len(m.spec.Variants) {
		return "a variant"
	}
	return m.spec.Variants[v].Name
}

func (i *instance) loaded(now serving.Time, v serving.VariantID) {
	for k := range i.variants {
		if x := &i.variants[k]; x.variant == v && x.loading {
			x.loading, x.from = false, now
		}
	}
}

func (m *machines) kept(id serving.InstanceID, kept bool) {
	i := m.instances[id]
	if i == nil || i.state != readyState && i.state != keptState {
		return
	}
	m.touch(i.worker)
	i.state = readyState
	if kept {
		i.state = keptState
	}
}

func (m *machines) loads(id serving.InstanceID, v serving.VariantID) {
	i := m.instances[id]
	if i == nil {
		return
	}
	m.touch(i.worker)
	for k := range i.variants {
		if i.variants[k].variant == v {
			i.variants[k].loading = true
			return
		}
	}
	i.variants = append(i.variants, held{variant: v, loading: true, from: serving.Never, until: serving.Never})
}

func (m *machines) unloaded(now serving.Time, id serving.InstanceID, v serving.VariantID) {
	i := m.instances[id]
	if i == nil {
		return
	}
	m.touch(i.worker)
	i.variants = slices.DeleteFunc(i.variants, func(h held) bool {
		if h.variant != v {
			return false
		}
		if h.until = now; !h.loading {
			i.unheld = append(i.unheld, h)
		}
		return true
	})
	if n := len(i.unheld) - mostUnheld; n > 0 {
		i.unheld = append(i.unheld[:0], i.unheld[n:]...)
	}
}

func (m *machines) started(b *steps.Batch) {
	i := m.instances[b.Instance]
	if i == nil {
		return
	}
	m.runs(i.worker)
	i.running = append(i.running, b)
	m.batches++
}

// ended ends a batch, and returns its instance; nil for a batch that is not known.
func (m *machines) ended(now serving.Time, b *steps.Batch) *instance {
	if b == nil {
		return nil
	}
	i := m.instances[b.Instance]
	if i == nil {
		return nil
	}
	at := slices.Index(i.running, b)
	if at < 0 {
		return nil
	}
	i.running = slices.Delete(i.running, at, at+1)
	m.workers[i.worker].busy += now - b.Started
	m.batches--
	m.runs(i.worker)
	return i
}
