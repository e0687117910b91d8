package engine

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Planners leave out a worker that was lost, or a variant that failed to load, unfitAfter times in a row. They use it
// again some time after the last failure, or when it comes up. One failure is not enough, because instances are
// launched again anyway.
const unfitAfter = 2

// term is for how long plans leave something out: the first time, and at most, since it doubles with each failure.
type term struct{ first, most time.Duration }

var (
	workerUnfit  = term{5 * time.Second, 30 * time.Second}
	variantUnfit = term{5 * time.Minute, 5 * time.Minute}
)

// after is for how long something is left out that has failed so many times in a row.
func (t term) after(consecutive int) time.Duration {
	return doubled(t.first, t.most, max(consecutive-unfitAfter, 0))
}

// health counts consecutive failures of workers and variants.
type health struct {
	*world
	agenda   *agenda
	workers  []failures
	variants []failures
	fitAgain serving.Time // when the next of them may be used again; Never for none
	changes  uint64       // of which of them are unfit
}

type failures struct {
	consecutive int
	last        serving.Time
	leftOut     bool // by plans that were asked for since
}

func newHealth(w *world, a *agenda) *health {
	return &health{
		world: w, agenda: a, workers: make([]failures, len(w.spec.Workers)),
		variants: make([]failures, len(w.spec.Variants)), fitAgain: serving.Never,
	}
}

// grow takes up the variants that a spec has grown by. They have never failed.
func (h *health) grow(fresh []serving.VariantID) { h.variants = serving.Cleared(h.variants, fresh) }

func (h *health) workerFailed(w serving.WorkerID)   { h.failed(&h.workers[w], workerUnfit) }
func (h *health) variantFailed(v serving.VariantID) { h.failed(&h.variants[v], variantUnfit) }

// cameUp records that a variant came up on a worker.
func (h *health) cameUp(w serving.WorkerID, v serving.VariantID) {
	h.recovered(&h.workers[w])
	h.recovered(&h.variants[v])
}

func (h *health) failed(f *failures, t term) {
	f.consecutive++
	f.last = h.now
	if f.consecutive >= unfitAfter {
		f.leftOut = true
		h.changes++
		h.fitAgain = min(h.fitAgain, h.now.Add(t.after(f.consecutive)))
		h.agenda.changeBasis()
	}
}

// lapse has a plan asked for when something that plans leave out may be used again. Otherwise a machine that is back
// would idle until the demand changes.
func (h *health) lapse() {
	if h.now < h.fitAgain {
		return
	}
	h.fitAgain = serving.Never
	h.lapseOf(h.workers, workerUnfit)
	h.lapseOf(h.variants, variantUnfit)
}

func (h *health) lapseOf(list []failures, t term) {
	for k := range list {
		switch f := &list[k]; {
		case !f.leftOut:
		case h.unfit(f, t):
			h.fitAgain = min(h.fitAgain, f.last.Add(t.after(f.consecutive)))
		default:
			f.leftOut = false
			h.changes++
			h.agenda.changeBasis()
		}
	}
}

func (h *health) recovered(f *failures) {
	if f.consecutive >= unfitAfter {
		h.changes++
		h.agenda.changeBasis()
	}
	f.consecutive, f.leftOut = 0, false
}

// suspect reports whether the last event of a worker was a failure.
func (h *health) suspect(w serving.WorkerID) bool { return h.workers[w].consecutive > 0 }

func (h *health) workerUnfit(w serving.WorkerID) bool { return h.unfit(&h.workers[w], workerUnfit) }

func (h *health) variantUnfit(v serving.VariantID) bool {
	return h.unfit(&h.variants[v], variantUnfit)
}

func (h *health) unfit(f *failures, t term) bool {
	return f.consecutive >= unfitAfter && h.now.Sub(f.last) < t.after(f.consecutive)
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
