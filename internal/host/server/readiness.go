package server

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// readiness keeps which models can answer. Probes come several times a second for each of a thousand models, and a
// question to the engine is a step that queries wait for. So the engine is asked once after a change, whoever asks.
type readiness struct {
	changes atomic.Uint64 // of the engine, as its owner has seen it

	mu   sync.Mutex // held while the engine is asked: whoever else asks waits for that answer
	kept *reach     // nil before the first question
}

// reach is what the instances could serve at one moment. It is not changed.
type reach struct {
	at       uint64 // engine.Engine.Changes
	spec     *serving.Spec
	stages   []bool // by StageID: a ready instance has a usable variant
	variants []bool // by VariantID: a ready instance runs what is pinned to it
	broken   []bool // by VariantID
}

// observe notes that the engine has changed; its owner calls it after every step.
func (r *readiness) observe(e *engine.Engine) {
	if now := e.Changes(); now != r.changes.Load() {
		r.changes.Store(now)
	}
}

// of returns what can be served now. Once the plane is closed that is nothing.
func (r *readiness) of(p *dataplane.Plane) *reach {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil || r.kept.at != r.changes.Load() {
		next := &reach{spec: new(serving.Spec)}
		p.Inspect(func(e *engine.Engine) { next = newReach(e) })
		r.kept = next
	}
	return r.kept
}

func newReach(e *engine.Engine) *reach {
	spec := e.Spec()
	x := &reach{
		at: e.Changes(), spec: spec, stages: make([]bool, len(spec.Stages)),
		variants: make([]bool, len(spec.Variants)), broken: make([]bool, len(spec.Variants)),
	}
	for s := range spec.Stages {
		ready := e.Fleet().Ready(serving.StageID(s))
		x.stages[s] = slices.ContainsFunc(ready, func(i *fleet.Instance) bool { return i.Active() >= 0 })
		for _, v := range spec.Stages[s].Variants {
			x.variants[v] = slices.ContainsFunc(ready, func(i *fleet.Instance) bool { return i.ServesPinned(v) })
			x.broken[v] = e.Broken(v)
		}
	}
	return x
}

// serves reports whether a model's app is in a spec: another may have its place.
func serves(spec *serving.Spec, m *server.Model) bool {
	return m.App >= 0 && int(m.App) < len(spec.Apps) && spec.Apps[m.App].Generation == m.Generation
}

// stagesOf are the stages of a model's app; none of an app that the engine does not know.
func (x *reach) stagesOf(m *server.Model) []serving.StageID {
	if !serves(x.spec, m) {
		return nil
	}
	return x.spec.Apps[m.App].Stages
}

// ready reports whether every stage of a model can answer, and the last one with a variant; serving.None for any.
func (x *reach) ready(m *server.Model, pin serving.VariantID) bool {
	stages := x.stagesOf(m)
	for at, s := range stages {
		if last := at == len(stages)-1; last && pin != serving.None {
			return int(pin) < len(x.variants) && x.variants[pin]
		}
		if !x.stages[s] {
			return false
		}
	}
	return len(stages) > 0
}

// waitsFor is the first stage of a model that cannot answer; "" for none.
func (x *reach) waitsFor(m *server.Model) string {
	for _, s := range x.stagesOf(m) {
		if !x.stages[s] {
			return x.spec.Stages[s].Name
		}
	}
	return ""
}

// isBroken reports whether a stage of a model has variants only that have failed to load.
func (x *reach) isBroken(m *server.Model) bool {
	return slices.ContainsFunc(x.stagesOf(m), func(s serving.StageID) bool {
		return !slices.ContainsFunc(x.spec.Stages[s].Variants, func(v serving.VariantID) bool {
			return !x.broken[v] && !x.spec.Variants[v].Retired
		})
	})
}
