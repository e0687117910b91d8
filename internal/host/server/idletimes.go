package server

import (
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
)

// idleTimesEvery is the time between two saves of changed idle times.
const idleTimesEvery = 5 * time.Second

// recall returns the idle times that an earlier run has learned of a spec's apps. It returns those of an app only once,
// and none for scalers that do not learn idle times.
func (h *functionHost) recall(spec *serving.Spec) []engine.Recalled {
	h.idleMu.Lock()
	defer h.idleMu.Unlock()
	if h.idle == nil {
		return nil
	}
	system := h.profiled.System()
	trial, err := systems.NewScaler(system.Scaler, system.Options)
	if err != nil {
		return nil
	}
	r := trial.Traits().Recaller
	if r == nil {
		return nil
	}
	out, lost := h.idle.Recall(spec, time.Now(), func(x *engine.Recalled) error {
		return r.Recall(x.App, x.Memory, 0, x.Older)
	})
	for _, err := range lost {
		h.log.Warn("a server's memory", "error", err)
	}
	return out
}

// saveIdleTimes saves learned idle times every idleTimesEvery until done is closed.
func (h *functionHost) saveIdleTimes(done <-chan struct{}) {
	tick := time.NewTicker(idleTimesEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			h.save()
		}
	}
}

// save stores the idle times that have changed since the last call.
func (h *functionHost) save() {
	h.idleMu.Lock()
	defer h.idleMu.Unlock()
	p := h.service.plane
	err := h.idle.Save(func(look func(*engine.Engine, serving.Time)) bool {
		return p.Inspect(func(e *engine.Engine) { look(e, p.Now()) })
	}, time.Now())
	if err != nil {
		h.log.Error("idle times are not kept", "error", err)
	}
}
