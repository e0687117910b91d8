package engine

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Planners leave out a worker that was lost, or a variant that failed to load, badAfter times in a row, until so much
// time has passed since the last or it comes up after all. One failure is not enough: instances are launched again
// anyhow.
const (
	badAfter    = 2
	workerAfter = 30 * time.Second
	brokenAfter = 5 * time.Minute
)

// health counts failures in a row.
type health struct {
	failures int
	last     serving.Time
}

func (h *health) bad(now serving.Time, after time.Duration) bool {
	return h.failures >= badAfter && now.Sub(h.last) < after
}

func (e *Engine) hurt(h *health) {
	h.failures++
	h.last = e.now
	if h.failures >= badAfter {
		e.shifted, e.scaleDirty = e.now, true
	}
}

func (e *Engine) heal(h *health) {
	if h.failures >= badAfter {
		e.shifted, e.scaleDirty = e.now, true
	}
	h.failures = 0
}

func (e *Engine) unwell(w serving.WorkerID)   { e.hurt(&e.machines[w]) }
func (e *Engine) spoiled(v serving.VariantID) { e.hurt(&e.models[v]) }

// recovered takes note that v came up on i.
func (e *Engine) recovered(i *fleet.Instance, v serving.VariantID) {
	delete(e.failures, i.Key)
	e.heal(&e.machines[i.Key.Worker])
	e.heal(&e.models[v])
}

// snapshot copies what planners may know.
func (e *Engine) snapshot() *fleet.Snapshot {
	s := e.fleet.Snapshot(e.request, e.now)
	for w := range e.machines {
		if e.machines[w].bad(e.now, workerAfter) {
			s.Down = append(s.Down, serving.WorkerID(w))
		}
	}
	for v := range e.models {
		if e.models[v].bad(e.now, brokenAfter) {
			s.Broken = append(s.Broken, serving.VariantID(v))
		}
	}
	return s
}
