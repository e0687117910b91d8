package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// startsKept is how many times that machines of a device type took to come are kept. Their median is believed.
const startsKept = 9

// machines knows what is said of the machines behind workers, where they are had from elsewhere: which are about to go,
// which cannot be had for a while, and how long they take to come. Planners leave out the first two.
type machines struct {
	*world
	agenda  *agenda
	beliefs *beliefs
	leaving []bool         // by WorkerID
	missing []serving.Time // by WorkerID: until when; 0 for one that can be had
	any     bool           // some machine is missing
	starts  [][]time.Duration
	longest time.Duration // believed of any device type
}

func newMachines(w *world, a *agenda, b *beliefs) *machines {
	return &machines{
		world: w, agenda: a, beliefs: b, leaving: make([]bool, len(w.spec.Workers)),
		missing: make([]serving.Time, len(w.spec.Workers)), starts: make([][]time.Duration, len(w.spec.DeviceTypes)),
	}
}

// changed applies what happened to a machine. It reports whether its worker can be launched on again.
func (m *machines) changed(in *Input) (back bool) {
	w := in.Worker
	if w < 0 || int(w) >= len(m.leaving) {
		return false // of no worker here
	}
	was := m.leaving[w] || m.missing[w] > 0
	switch in.Machine {
	case MachineLeaving:
		m.leaving[w] = true
	case MachineMissing:
		m.missing[w], m.any = m.now.Add(max(in.For, 1)), true
	case MachineStays:
		m.leaving[w], m.missing[w] = false, 0
	case MachineCame:
		m.missing[w] = 0
		m.learn(m.spec.Workers[w].DeviceType, in.Took)
	}
	if is := m.leaving[w] || m.missing[w] > 0; is != was {
		m.agenda.changeBasis()
		return was
	}
	return false
}

// learn notes how long a machine took to come.
func (m *machines) learn(d serving.DeviceTypeID, took time.Duration) {
	m.starts[d] = append(m.starts[d], max(took, 0))
	if len(m.starts[d]) > startsKept {
		m.starts[d] = slices.Delete(m.starts[d], 0, 1)
	}
	believed := m.believed()
	m.longest = slices.Max(believed)
	m.beliefs.setStarts(believed)
}

// believed returns how long machines are believed to take, by device type. A part of a machine takes as long as the
// slowest machine that has it.
func (m *machines) believed() []time.Duration {
	out := make([]time.Duration, len(m.spec.DeviceTypes))
	for d := range out {
		if s := slices.Sorted(slices.Values(m.starts[d])); len(s) > 0 {
			out[d] = s[len(s)/2]
		}
	}
	for d := range out {
		if m.spec.DeviceTypes[d].Part {
			for _, w := range m.spec.Hosts(serving.DeviceTypeID(d)) {
				out[d] = max(out[d], out[m.spec.Workers[w].DeviceType])
			}
		}
	}
	return out
}

// absentUntil is when the machine of a worker may be asked for again; 0 for now.
func (m *machines) absentUntil(w serving.WorkerID) serving.Time {
	if m.missing[w] > m.now {
		return m.missing[w]
	}
	return 0
}

// expire ends the times for which machines could not be had.
func (m *machines) expire() {
	if !m.any {
		return
	}
	m.any = false
	for w, until := range m.missing {
		switch {
		case until == 0:
		case until <= m.now:
			m.missing[w] = 0
			m.agenda.changeBasis()
		default:
			m.any = true
		}
	}
}

// next returns when the first machine may be asked for again; serving.Never where none is missing.
func (m *machines) next() serving.Time {
	first := serving.Never
	if m.any {
		for _, until := range m.missing {
			first = min(first, cmp.Or(until, serving.Never))
		}
	}
	return first
}

// report lists in a snapshot the workers whose machines are about to go or cannot be had.
func (m *machines) report(s *fleet.Snapshot) {
	for w := range m.leaving {
		id := serving.WorkerID(w)
		if (m.leaving[w] || m.missing[w] > 0) && !slices.Contains(s.Down, id) {
			s.Down = append(s.Down, id)
		}
	}
}
