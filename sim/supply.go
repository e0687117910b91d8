package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// Supply says how machines are had: as where they are bought when an instance is launched on a worker, and given back
// after the last one there.
type Supply struct {
	// Starts is by DeviceTypeID of the worker how long its machine takes to come; 0, or beyond its end, for machines
	// that are there.
	Starts []time.Duration
	// Linger is how long a machine without instances is kept.
	Linger time.Duration
	// Gaps are times in which no machine is to be had for a worker. What asks for one then is told so after Timeout,
	// and that it is not worth another try for askAgain times as long.
	Gaps    []Gap
	Timeout time.Duration
}

// askAgain is as in machine supply on real clocks.
const askAgain = 4

// Gap is a time in which a machine that is asked for does not come.
type Gap struct {
	Worker serving.WorkerID
	From   serving.Time
	Until  serving.Time
}

// held is what a run knows of a worker's machine.
type held struct {
	has   bool
	asked serving.Time
	ready serving.Time // when it is, or was
	idle  serving.Time // since when no instance is there; Never while one is
}

// notice is the announcement of a fault.
type notice struct {
	at     serving.Time
	worker serving.WorkerID
}

// noticesOf lists the announcements of faults, in the order of their times.
func noticesOf(faults []Fault) (out []notice) {
	for k := range faults {
		if f := &faults[k]; f.Notice > 0 {
			out = append(out, notice{max(f.At.Add(-f.Notice), 0), f.Worker})
		}
	}
	slices.SortStableFunc(out, func(a, b notice) int { return cmp.Compare(a.at, b.at) })
	return out
}

// announce collects the announcements that are due.
func (s *simulation) announce(now serving.Time) {
	for ; len(s.notices) > 0 && s.notices[0].at <= now; s.notices = s.notices[1:] {
		s.in = append(s.in, engine.NewMachineChanged(s.notices[0].worker, engine.MachineLeaving, 0))
	}
}

// machineReady returns when the machine of a worker is ready for an instance that is launched now; false where none is
// to be had, and then how the instance ends is scheduled.
func (s *simulation) machineReady(now serving.Time, d *engine.Decision, warm bool) (at serving.Time, ok bool) {
	w := d.Launch.Key.Worker
	kind := s.Spec.Workers[w].DeviceType
	if s.Supply == nil || int(kind) >= len(s.Supply.Starts) || s.Supply.Starts[kind] <= 0 {
		return now, true
	}
	for len(s.had) <= int(w) {
		s.had = append(s.had, held{})
	}
	m := &s.had[w]
	if m.has && (m.idle == serving.Never || now.Sub(m.idle) < s.Supply.Linger) {
		m.idle = serving.Never
		return max(now, m.ready), true
	}
	if slices.ContainsFunc(s.Supply.Gaps, func(g Gap) bool { return g.Worker == w && g.From <= now && now < g.Until }) {
		ends := now.Add(max(s.Supply.Timeout, 1))
		s.happens(ends, engine.NewMachineChanged(w, engine.MachineMissing, askAgain*s.Supply.Timeout))
		s.happens(ends, engine.NewInstanceLost(d.Instance))
		return 0, false
	}
	s.giveBack(w, now)
	*m = held{has: true, asked: now, ready: now, idle: serving.Never}
	if !warm {
		m.ready = now.Add(s.Supply.Starts[kind])
		s.happens(m.ready, engine.NewMachineChanged(w, engine.MachineCame, s.Supply.Starts[kind]))
	}
	return m.ready, true
}

// left notes that an instance is gone. The machine is kept for a while after the last.
func (s *simulation) left(now serving.Time) {
	if s.Supply == nil {
		return
	}
	used := make(map[serving.WorkerID]bool)
	for _, i := range s.Engine.Fleet().Live() {
		used[i.Worker()] = true
	}
	for w := range s.had {
		if m := &s.had[w]; m.has && m.idle == serving.Never && !used[serving.WorkerID(w)] {
			m.idle = now
		}
	}
}

// loseMachine notes that the machine of a worker is gone.
func (s *simulation) loseMachine(w serving.WorkerID, at serving.Time) {
	if int(w) < len(s.had) && w >= 0 {
		s.giveBack(w, at)
		s.had[w] = held{}
	}
}

// giveBack counts the time for which a worker's machine was held, at most until a time.
func (s *simulation) giveBack(w serving.WorkerID, until serving.Time) {
	m := &s.had[w]
	if !m.has {
		return
	}
	if m.idle != serving.Never {
		until = min(until, m.idle.Add(s.Supply.Linger))
	}
	kind := s.Spec.Workers[w].DeviceType
	for len(s.heldOf) <= int(kind) {
		s.heldOf = append(s.heldOf, 0)
	}
	s.heldOf[kind] += until.Sub(m.asked)
}

// heldUntil is Result.Held of a run that ends at a time.
func (s *simulation) heldUntil(end serving.Time) []time.Duration {
	if s.Supply == nil {
		return nil
	}
	for w := range s.had {
		s.giveBack(serving.WorkerID(w), end)
	}
	return s.heldOf
}
