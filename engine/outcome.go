package engine

import (
	"github.com/sluice-serving/sluice/report"
	"github.com/sluice-serving/sluice/serving"
)

// Ended returns what an EndQuery decision made at now means to the metrics: the same for a simulated and a live run.
func (d *Decision) Ended(now serving.Time) report.Outcome {
	return report.Outcome{
		Query: d.Query, App: d.App, Variant: d.Variant, Outcome: d.Outcome, Arrived: d.Arrived, Done: now, Deadline: d.Deadline,
		Queue: d.Queue, Items: d.Brought, Batch: d.Items, Accuracy: d.Accuracy, Label: report.LabelUnknown,
	}
}

// usage integrates what instances and workers cost and how busy they are.
type usage struct {
	busy, slots serving.Time
	dollars     float64
	workers     []worker
}

type worker struct {
	instances int
	since     serving.Time
}

func (u *usage) launched(w serving.WorkerID, now serving.Time) {
	if u.workers[w].instances++; u.workers[w].instances == 1 {
		u.workers[w].since = now
	}
}

func (e *Engine) price(w serving.WorkerID, span serving.Time) float64 {
	return e.spec.DeviceTypes[e.spec.Workers[w].DeviceType].PricePerHour * span.Seconds() / 3600
}

// Usage returns what has been consumed from the start until now: dollars from the launch of a worker's first instance to
// the end of its last, slot time from the launch of each instance, busy slot time of its finished and running batches.
func (e *Engine) Usage(now serving.Time) report.Usage {
	busy, slots, dollars := e.used.busy, e.used.slots, e.used.dollars
	for _, i := range e.fleet.Live() {
		busy += i.Busy
		for _, b := range i.Running {
			busy += max(now-b.Started, 0)
		}
		slots += (now - i.Launched) * serving.Time(i.Slots)
	}
	for w := range e.used.workers {
		if e.used.workers[w].instances > 0 {
			dollars += e.price(serving.WorkerID(w), now-e.used.workers[w].since)
		}
	}
	return report.Usage{Dollars: dollars, Busy: busy.Sub(0), Slots: slots.Sub(0)}
}
