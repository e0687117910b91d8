package engine

import (
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Ended returns what an EndQuery decision made at now means to the metrics: the same for a simulated and a live run.
func (d *Decision) Ended(now serving.Time) report.Outcome {
	return report.Outcome{
		Query: d.Query, App: d.App, Variant: d.Variant, Outcome: d.Outcome, Arrived: d.Arrived, Done: now,
		Deadline: d.Deadline,
		Queue:    d.Queue, Items: d.Brought, Batch: d.Items, Accuracy: d.Accuracy, Label: report.LabelUnknown,
	}
}

// usage integrates what instances and workers cost and how busy they are.
type usage struct {
	busy, slots      serving.Time
	threads, percent serving.Time // thread time, and time of a per cent of an accelerator
	dollars          float64
	workers          []worker
}

// worker counts instances of a worker, and among them those that are not on a part of it but may use all.
type worker struct {
	instances, wholes    int
	since, sinceForWhole serving.Time
}

func (e *Engine) launched(i *fleet.Instance) {
	u := &e.used.workers[i.Key.Worker]
	if u.instances++; u.instances == 1 {
		u.since = e.now
	}
	if !e.spec.DeviceTypes[i.DeviceType].Part {
		if u.wholes++; u.wholes == 1 {
			u.sinceForWhole = e.now
		}
	}
}

func (e *Engine) removed(i *fleet.Instance) {
	e.used.busy += i.Busy
	e.used.slots += (e.now - i.Launched) * serving.Time(i.Built)
	u := &e.used.workers[i.Key.Worker]
	if u.instances--; u.instances == 0 {
		e.used.dollars += e.price(i.Key.Worker, e.now-u.since)
	}
	if e.spec.DeviceTypes[i.DeviceType].Part {
		e.used.hold(&e.spec.DeviceTypes[i.DeviceType], e.now-i.Launched)
	} else if u.wholes--; u.wholes == 0 {
		e.used.hold(&e.spec.DeviceTypes[i.DeviceType], e.now-u.sinceForWhole)
	}
}

// hold counts what a part, or a whole machine, has been held for.
func (u *usage) hold(d *serving.DeviceType, span serving.Time) {
	u.threads += span * serving.Time(d.Cores)
	u.percent += span * serving.Time(d.Percent+100*d.Accelerators)
}

func (e *Engine) price(w serving.WorkerID, span serving.Time) float64 {
	return e.spec.DeviceTypes[e.spec.Workers[w].DeviceType].PricePerHour * span.Seconds() / 3600
}

// Usage returns what has been consumed from the start until now: dollars from the launch of a worker's first instance
// to the end of its last, slot time from the launch of each instance, busy slot time of its finished and running
// batches; threads and accelerators of a part while its instance lives, of a machine while any instance is on it as a
// whole.
func (e *Engine) Usage(now serving.Time) report.Usage {
	u := e.used
	for _, i := range e.fleet.Live() {
		u.busy += i.Busy
		for _, b := range i.Running {
			u.busy += max(now-b.Started, 0)
		}
		u.slots += (now - i.Launched) * serving.Time(i.Built)
		if d := &e.spec.DeviceTypes[i.DeviceType]; d.Part {
			u.hold(d, now-i.Launched)
		}
	}
	for w := range u.workers {
		id := serving.WorkerID(w)
		if u.workers[w].instances > 0 {
			u.dollars += e.price(id, now-u.workers[w].since)
		}
		if u.workers[w].wholes > 0 {
			u.hold(&e.spec.DeviceTypes[e.spec.Workers[w].DeviceType], now-u.workers[w].sinceForWhole)
		}
	}
	return report.Usage{
		Dollars: u.dollars, Busy: u.busy.Sub(0), Slots: u.slots.Sub(0), Threads: u.threads.Sub(0),
		Percent: u.percent.Sub(0),
	}
}
