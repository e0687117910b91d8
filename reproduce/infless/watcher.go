package infless

import (
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// watcher sees of a run when nothing was warm of a stage, and what instances occupied.
type watcher struct {
	spec   *serving.Spec
	step   time.Duration
	live   map[serving.InstanceID]*watched
	stages []warmth
	now    serving.Time
	holds  float64 // GFLOP/s
	held   []float64
}

type watched struct {
	stage serving.StageID
	holds float64
	ready bool
}

// warmth is how many instances of a stage are ready, and the last span without any.
type warmth struct {
	ready    int
	from, to serving.Time
}

func newWatcher(spec *serving.Spec, step time.Duration) *watcher {
	w := &watcher{
		spec: spec, step: step, live: make(map[serving.InstanceID]*watched), stages: make([]warmth, len(spec.Stages)),
	}
	for s := range w.stages {
		w.stages[s].to = serving.Never
	}
	return w
}

// watch takes a step of the engine.
func (w *watcher) watch(now serving.Time, in []engine.Input, out []engine.Decision) {
	w.hold(now)
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
			i := &watched{stage: d.Stage, holds: float64(perThread*t.Cores + perPercent*t.Percent)}
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

// hold counts what has been occupied until now.
func (w *watcher) hold(now serving.Time) {
	for w.now < now {
		k := int(w.now / serving.Time(w.step))
		until := min(now, serving.Time(k+1)*serving.Time(w.step))
		for len(w.held) <= k {
			w.held = append(w.held, 0)
		}
		w.held[k] += w.holds * until.Sub(w.now).Seconds()
		w.now = until
	}
}

// cold is how long a query that arrived at a stage had to wait for a start, of those that have been answered.
func (w *watcher) cold(s serving.StageID, arrived serving.Time) time.Duration {
	x := &w.stages[s]
	if x.to == serving.Never || arrived < x.from || arrived >= x.to {
		return 0
	}
	return x.to.Sub(arrived)
}

// steps returns the mean of what was occupied in each of the first n steps.
func (w *watcher) steps(n int) []float64 {
	out := make([]float64, n)
	for k := range min(n, len(w.held)) {
		out[k] = w.held[k] / w.step.Seconds()
	}
	return out
}
