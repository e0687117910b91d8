package infless

import (
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// watcher observes a run: when stages had no ready instance, and which resources instances occupied.
type watcher struct {
	spec     *serving.Spec
	step     time.Duration
	live     map[serving.InstanceID]*liveInstance
	stages   []readiness
	now      serving.Time
	holds    float64 // GFLOP/s occupied now
	occupied []float64
}

type liveInstance struct {
	stage serving.StageID
	holds float64
	ready bool
}

// readiness is the number of ready instances of a stage, and the last span without one.
type readiness struct {
	ready    int
	from, to serving.Time
}

func newWatcher(spec *serving.Spec, step time.Duration) *watcher {
	w := &watcher{
		spec: spec, step: step, live: make(map[serving.InstanceID]*liveInstance),
		stages: make([]readiness, len(spec.Stages)),
	}
	for s := range w.stages {
		w.stages[s].to = serving.Never
	}
	return w
}

// onStep observes a step of the engine.
func (w *watcher) onStep(now serving.Time, in []engine.Input, out []engine.Decision) {
	w.account(now)
	for k := range in {
		if in[k].Kind != engine.InstanceChanged {
			continue
		}
		if i := w.live[in[k].Instance]; i != nil && in[k].Change == engine.VariantReady && !i.ready {
			i.ready = true
			s := &w.stages[i.stage]
			if s.ready++; s.ready == 1 {
				s.to = now
			}
		}
	}
	for k := range out {
		switch d := &out[k]; d.Kind {
		case engine.LaunchInstance:
			t := &w.spec.DeviceTypes[d.Launch.DeviceType]
			i := &liveInstance{stage: d.Stage, holds: float64(perThread*t.Cores + perPercent*t.Percent)}
			w.live[d.Instance] = i
			w.holds += i.holds
		case engine.StopInstance:
			i := w.live[d.Instance]
			delete(w.live, d.Instance)
			w.holds -= i.holds
			if i.ready {
				s := &w.stages[i.stage]
				if s.ready--; s.ready == 0 {
					s.from, s.to = now, serving.Never
				}
			}
		}
	}
}

// account adds the resources that were occupied until now.
func (w *watcher) account(now serving.Time) {
	for w.now < now {
		k := int(w.now / serving.Time(w.step))
		until := min(now, serving.Time(k+1)*serving.Time(w.step))
		for len(w.occupied) <= k {
			w.occupied = append(w.occupied, 0)
		}
		w.occupied[k] += w.holds * until.Sub(w.now).Seconds()
		w.now = until
	}
}

// startWait returns how long a query that arrived at a stage waited for a start. It is exact for queries that have been
// answered.
func (w *watcher) startWait(s serving.StageID, arrived serving.Time) time.Duration {
	x := &w.stages[s]
	if x.to == serving.Never || arrived < x.from || arrived >= x.to {
		return 0
	}
	return x.to.Sub(arrived)
}

// meansBySteps returns the mean occupied resources in each of the first n steps, in GFLOP/s.
func (w *watcher) meansBySteps(n int) []float64 {
	out := make([]float64, n)
	for k := range min(n, len(w.occupied)) {
		out[k] = w.occupied[k] / w.step.Seconds()
	}
	return out
}
