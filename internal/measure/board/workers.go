package board

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Kind is a device type and its workers' names, in the order of WorkerNow.Worker.
type Kind struct {
	Name   string  `json:"name"`
	Price  float64 `json:"price_per_hour"` // now
	Cores  int     `json:"cores"`
	Memory int64   `json:"memory_bytes,omitempty"`
}

// WorkerInfo is what of a worker does not change.
type WorkerInfo struct {
	Name string `json:"name"`
	Kind int    `json:"kind"` // index of Machines.Kinds
}

// WorkerNow is what a worker does.
type WorkerNow struct {
	Worker    int           `json:"w"`    // index of Machines.Workers
	Busy      float64       `json:"busy"` // share of its slot time since the look or mark before, in [0, 1]
	Instances []InstanceNow `json:"i"`
	Events    []Event       `json:"events,omitempty"`
	// Runs says that only Busy and what instances run have changed: the other fields are left out, and so are instances
	// that run nothing.
	Runs bool `json:"runs,omitempty"`
}

// InstanceNow is an instance on a worker.
type InstanceNow struct {
	ID       int32        `json:"id"`
	Stage    int32        `json:"stage,omitempty"` // index of Machines.Stages
	State    string       `json:"state,omitempty"` // loading, ready, kept or failed
	Slots    int          `json:"slots,omitempty"`
	Variants []VariantNow `json:"v,omitempty"`
	Running  []BatchNow   `json:"run,omitempty"` // at most mostRuns
}

// mostRuns is the most batches of an instance that are listed.
const mostRuns = 4

// VariantNow is a variant that an instance holds or loads.
type VariantNow struct {
	Variant int32 `json:"v"` // index of Machines.Variants
	Loading bool  `json:"loading,omitempty"`
}

// BatchNow is a batch that runs.
type BatchNow struct {
	Batch    uint64  `json:"id"`
	Variant  int32   `json:"v"`
	Items    int32   `json:"items"`
	StartedS float64 `json:"from_s"`
	EndS     float64 `json:"to_s"` // as believed
	Why      string  `json:"why"`
}

// Machines are all workers and what they do. Stages and Variants have the names of indices.
type Machines struct {
	Schema   int          `json:"schema"`
	NowS     float64      `json:"now_s"`
	Kinds    []Kind       `json:"kinds"`
	Stages   []StageName  `json:"stages"`
	Variants []string     `json:"variants"`
	Workers  []WorkerInfo `json:"workers"`
	States   []WorkerNow  `json:"states"`
}

// StageName names a stage and its app.
type StageName struct {
	App   string `json:"app"`
	Stage string `json:"stage"`
}

// MachineDelta has the workers that have changed since the look before.
type MachineDelta struct {
	NowS   float64     `json:"now_s"`
	States []WorkerNow `json:"states"`
}

// Look remembers what a reader of machines has seen. The zero value has seen nothing.
type Look struct {
	version uint64
	at      serving.Time
	busy    []serving.Time // by worker
	shown   []float64      // busy share by worker, as last returned
}

// marks remember how long workers were busy at two instants. A reader that looks for the first time is told of the time
// since the older one.
type marks struct {
	at   [2]serving.Time
	busy [2][]serving.Time // by worker
}

// markEvery is the least time between two marks.
const markEvery = 5 * time.Second

// Mark remembers how long every worker has been busy, at most once in markEvery. Without marks, what a first look says
// of how busy workers are is about the whole time since the start.
func (b *Board) Mark() {
	b.log.Lock()
	defer b.log.Unlock()
	x, m := &b.marks, &b.machines
	if b.now.Sub(x.at[1]) < markEvery {
		return
	}
	x.at[0], x.at[1] = x.at[1], b.now
	x.busy[0], x.busy[1] = x.busy[1], x.busy[0][:0]
	for w := range m.workers {
		x.busy[1] = append(x.busy[1], m.busyTime(w, b.now))
	}
}

// Begin returns a Look that has seen nothing but how busy workers were some seconds ago.
func (b *Board) Begin() Look {
	b.log.Lock()
	defer b.log.Unlock()
	return Look{at: b.marks.at[0], busy: slices.Clone(b.marks.busy[0])}
}

// busyTime is the slot time that a worker's batches have taken.
func (m *machines) busyTime(at int, now serving.Time) serving.Time {
	total := m.workers[at].busy
	for _, i := range m.workers[at].instances {
		for _, b := range i.running {
			total += now - b.Started
		}
	}
	return total
}

// lookPiece is how many workers are copied at a time: steps of the engine wait no longer than for that.
const lookPiece = 128

// Machines returns the tables of names with the state of every worker.
func (b *Board) Machines(l *Look) *Machines {
	*l = b.Begin()
	b.log.Lock()
	spec := b.spec
	prices := slices.Clone(b.machines.prices)
	b.log.Unlock()
	out := &Machines{Schema: Schema, Workers: make([]WorkerInfo, len(spec.Workers))}
	for d := range spec.DeviceTypes {
		x := &spec.DeviceTypes[d]
		out.Kinds = append(out.Kinds, Kind{x.Name, prices[d], x.Cores, x.MemoryBytes})
	}
	for w := range spec.Workers {
		out.Workers[w] = WorkerInfo{spec.Workers[w].Name, int(spec.Workers[w].DeviceType)}
	}
	for s := range spec.Stages {
		out.Stages = append(out.Stages, StageName{spec.Apps[spec.Stages[s].App].Name, spec.Stages[s].Name})
	}
	for v := range spec.Variants {
		out.Variants = append(out.Variants, spec.Variants[v].Name)
	}
	d := b.Changed(l, true)
	out.NowS, out.States = d.NowS, d.States
	return out
}

// Changed returns the workers that have changed since the look before, or all. Events come with it.
func (b *Board) Changed(l *Look, all bool) *MachineDelta {
	out := &MachineDelta{States: []WorkerNow{}}
	var version uint64
	var span serving.Time
	for from := 0; ; from += lookPiece {
		b.log.Lock()
		if from == 0 {
			version, span, l.at = b.machines.version, b.now-l.at, b.now
			out.NowS = b.now.Seconds()
		}
		n := len(b.machines.workers)
		l.busy, l.shown = extended(l.busy, n), extended(l.shown, n)
		for w := from; w < min(from+lookPiece, n); w++ {
			b.machines.look(l, w, span, all, b.now, out)
		}
		b.log.Unlock()
		if from+lookPiece >= n {
			break
		}
	}
	l.version = version
	return out
}

// busyShown is the least change of a busy share that is worth telling.
const busyShown = 0.02

func (m *machines) look(l *Look, at int, span serving.Time, all bool, now serving.Time, out *MachineDelta) {
	w := &m.workers[at]
	total := m.busyTime(at, now)
	busy := l.shown[at] // where no time has gone by
	if span > 0 {
		busy = 0
	}
	if span > 0 && w.slots > 0 {
		busy = min(1, max(0, float64(total-l.busy[at])/float64(span)/float64(w.slots)))
	}
	l.busy[at] = total
	moved := busy-l.shown[at] > busyShown || l.shown[at]-busy > busyShown
	if !all && !moved && w.changed <= l.version {
		return
	}
	l.shown[at] = busy
	x := WorkerNow{Worker: at, Busy: rounded(busy), Instances: []InstanceNow{}, Runs: !all && w.held <= l.version}
	if !x.Runs {
		x.Events = slices.Clone(w.events)
	}
	for _, i := range w.instances {
		if x.Runs && len(i.running) == 0 {
			continue
		}
		y := InstanceNow{ID: int32(i.id)}
		if !x.Runs {
			y.Stage, y.State, y.Slots = int32(i.stage), i.state, i.slots
			for _, h := range i.variants {
				y.Variants = append(y.Variants, VariantNow{int32(h.variant), h.loading})
			}
		}
		for _, r := range i.running[:min(len(i.running), mostRuns)] {
			y.Running = append(y.Running, BatchNow{
				Batch: uint64(r.ID), Variant: int32(r.Variant), Items: r.Items, StartedS: r.Started.Seconds(),
				EndS: r.Due().Seconds(), Why: r.Why.String(),
			})
		}
		x.Instances = append(x.Instances, y)
	}
	out.States = append(out.States, x)
}

// Where returns the name of the worker of a live instance and its device type; false for one that is gone.
func (b *Board) Where(id serving.InstanceID) (worker string, device serving.DeviceTypeID, ok bool) {
	b.log.Lock()
	defer b.log.Unlock()
	i := b.machines.instances[id]
	if i == nil {
		return "", serving.None, false
	}
	w := &b.spec.Workers[i.worker]
	return w.Name, w.DeviceType, true
}
