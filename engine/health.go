package engine

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Planners leave out a worker that was lost, or a variant that failed to load, unfitAfter times in a row, until so much
// time has passed since the last failure, or it comes up after all. One failure is not enough: instances are launched
// again anyhow.
const (
	unfitAfter      = 2
	workerUnfitFor  = 30 * time.Second
	variantUnfitFor = 5 * time.Minute
)

// health counts the failures in a row of workers and variants.
type health struct {
	*world
	agenda   *agenda
	workers  []failures
	variants []failures
}

type failures struct {
	inARow int
	last   serving.Time
}

func newHealth(w *world, a *agenda) *health {
	return &health{
		world: w, agenda: a, workers: make([]failures, len(w.spec.Workers)),
		variants: make([]failures, len(w.spec.Variants)),
	}
}

// grow makes room for the variants of a spec that has grown.
func (h *health) grow() { h.variants = lengthened(h.variants, len(h.spec.Variants)) }

func (h *health) workerFailed(w serving.WorkerID)   { h.failed(&h.workers[w]) }
func (h *health) variantFailed(v serving.VariantID) { h.failed(&h.variants[v]) }

// cameUp takes note that a variant came up on a worker.
func (h *health) cameUp(w serving.WorkerID, v serving.VariantID) {
	h.recovered(&h.workers[w])
	h.recovered(&h.variants[v])
}

func (h *health) failed(f *failures) {
	f.inARow++
	f.last = h.now
	if f.inARow >= unfitAfter {
		h.agenda.changeBasis()
	}
}

func (h *health) recovered(f *failures) {
	if f.inARow >= unfitAfter {
		h.agenda.changeBasis()
	}
	f.inARow = 0
}

// suspect tells whether the last that was heard of a worker is a failure.
func (h *health) suspect(w serving.WorkerID) bool { return h.workers[w].inARow > 0 }

func (h *health) workerUnfit(w serving.WorkerID) bool { return h.unfit(&h.workers[w], workerUnfitFor) }

func (h *health) variantUnfit(v serving.VariantID) bool {
	return h.unfit(&h.variants[v], variantUnfitFor)
}

func (h *health) unfit(f *failures, lasts time.Duration) bool {
	return f.inARow >= unfitAfter && h.now.Sub(f.last) < lasts
}

// report lists in a snapshot what planners are to leave out.
func (h *health) report(s *fleet.Snapshot) {
	for w := range h.workers {
		if id := serving.WorkerID(w); h.workerUnfit(id) {
			s.Down = append(s.Down, id)
		}
	}
	for v := range h.variants {
		if id := serving.VariantID(v); h.variantUnfit(id) {
			s.Broken = append(s.Broken, id)
		}
	}
}
