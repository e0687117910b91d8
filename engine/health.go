package engine

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Planners leave out a worker that was lost, or a variant that failed to load, unfitAfter times in a row. They use it
// again some time after the last failure, or when it comes up. One failure is not enough, because instances are
// launched again anyway.
const (
	unfitAfter      = 2
	workerUnfitFor  = 30 * time.Second
	variantUnfitFor = 5 * time.Minute
)

// health counts consecutive failures of workers and variants.
type health struct {
	*world
	agenda   *agenda
	workers  []failures
	variants []failures
}

type failures struct {
	consecutive int
	last        serving.Time
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

// cameUp records that a variant came up on a worker.
func (h *health) cameUp(w serving.WorkerID, v serving.VariantID) {
	h.recovered(&h.workers[w])
	h.recovered(&h.variants[v])
}

func (h *health) failed(f *failures) {
	f.consecutive++
	f.last = h.now
	if f.consecutive >= unfitAfter {
		h.agenda.changeBasis()
	}
}

func (h *health) recovered(f *failures) {
	if f.consecutive >= unfitAfter {
		h.agenda.changeBasis()
	}
	f.consecutive = 0
}

// suspect reports whether the last event of a worker was a failure.
func (h *health) suspect(w serving.WorkerID) bool { return h.workers[w].consecutive > 0 }

func (h *health) workerUnfit(w serving.WorkerID) bool { return h.unfit(&h.workers[w], workerUnfitFor) }

func (h *health) variantUnfit(v serving.VariantID) bool {
	return h.unfit(&h.variants[v], variantUnfitFor)
}

func (h *health) unfit(f *failures, lasts time.Duration) bool {
	return f.consecutive >= unfitAfter && h.now.Sub(f.last) < lasts
}

// report lists in a snapshot the workers and variants that planners are to leave out.
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
