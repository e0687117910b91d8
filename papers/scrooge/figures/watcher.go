package scrooge

import (
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// timeline is a run second by second.
type timeline struct {
	sent, inTime []float64   // frames, by the second in which they were sent
	cost         []float64   // mean $/h of rented machines
	begun        [][]float64 // by stage, then by second: items whose batch began
}

// watcher observes a run: which machines are rented.
type watcher struct {
	timeline
	spec   *serving.Spec
	on     map[serving.InstanceID]serving.WorkerID
	by     []int // number of instances by worker
	hourly float64
	now    serving.Time
}

func newWatcher(spec *serving.Spec, seconds int) *watcher {
	w := &watcher{spec: spec, on: make(map[serving.InstanceID]serving.WorkerID), by: make([]int, len(spec.Workers))}
	w.sent, w.inTime, w.cost = make([]float64, seconds), make([]float64, seconds), make([]float64, seconds)
	for range spec.Stages {
		w.begun = append(w.begun, make([]float64, seconds))
	}
	return w
}

// onStep observes a step of the engine. A machine is rented while any instance is on it, also one that loads or is
// kept.
func (w *watcher) onStep(now serving.Time, _ []engine.Input, out []engine.Decision) {
	w.charge(now)
	for k := range out {
		switch d := &out[k]; d.Kind {
		case engine.StartBatch:
			if at := int(now.Seconds()); at < len(w.cost) {
				w.begun[d.Stage][at] += float64(d.Items)
			}
		case engine.LaunchInstance:
			x := d.Launch.Key.Worker
			w.on[d.Instance] = x
			if w.by[x]++; w.by[x] == 1 {
				w.hourly += w.price(x)
			}
		case engine.StopInstance:
			x := w.on[d.Instance]
			delete(w.on, d.Instance)
			if w.by[x]--; w.by[x] == 0 {
				w.hourly -= w.price(x)
			}
		}
	}
}

func (w *watcher) price(x serving.WorkerID) float64 {
	return w.spec.DeviceTypes[w.spec.Workers[x].DeviceType].PricePerHour
}

// charge adds the cost until now.
func (w *watcher) charge(now serving.Time) {
	for w.now < now {
		at := int(w.now.Seconds())
		until := min(now, serving.Time(at+1)*serving.Time(time.Second))
		if at < len(w.cost) {
			w.cost[at] += w.hourly * until.Sub(w.now).Seconds()
		}
		w.now = until
	}
}

// onOutcome observes how a frame ended.
func (w *watcher) onOutcome(o *report.Outcome) {
	at := min(int(o.Arrived.Seconds()), len(w.sent)-1)
	w.sent[at]++
	if !experiment.Violated(o) {
		w.inTime[at]++
	}
}

// finishRate returns the share of the frames that met the objective, in per cent.
func (s *timeline) finishRate() float64 { return 100 * reproduce.Sum(s.inTime) / reproduce.Sum(s.sent) }

// secondsWithFinish returns the share of the seconds with frames in which at least least per cent of them were in time,
// in per cent.
func (s *timeline) secondsWithFinish(least float64) float64 {
	good, all := 0, 0
	for k, sent := range s.sent {
		if sent > 0 {
			all++
			if 100*s.inTime[k] >= least*sent {
				good++
			}
		}
	}
	return 100 * float64(good) / float64(max(all, 1))
}

// mean returns the mean cost in $/h.
func (s *timeline) mean() float64 { return reproduce.Sum(s.cost) / float64(len(s.cost)) }
