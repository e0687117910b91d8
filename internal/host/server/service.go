package server

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/measure/telemetry"
	"github.com/sluice-serving/sluice/internal/measure/tracing"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/pipeline"
)

// service implements server.Service over the data plane.
type service struct {
	plane      *dataplane.Plane // set once, before requests are served
	telemetry  *telemetry.Telemetry
	sequences  *sequences
	objectives *objectives                  // set once
	recorder   *recorder                    // nil where nothing is recorded
	shadow     *shadow                      // nil where nothing is compared
	tracer     *tracing.Tracer              // nil without traces
	spec       atomic.Pointer[serving.Spec] // in force

	planning sync.Mutex // held while a plan is made

	catalog *catalog // nil where models stay as they are; set once
	chains  *chains  // nil where there can be none; set once
	refiner *refiner // set once

	readiness readiness

	mu       sync.Mutex
	models   []*server.Model // both of these; the slice is replaced, never changed
	byName   map[string]*server.Model
	fixed    []*server.Model // of the configuration and of its repository
	deployed []*server.Model // functions
	apps     int             // number of apps of the configuration
	latest   *plan.Plan      // as the planner made it, for planned
	planned  *serving.Spec
	unloaded map[serving.AppID]bool
	ready    bool // was true once; it stays true

	trouble func(error) // of the server; set once

	strict bool // set once: the server is not ready while a model cannot be loaded
}

func newService(p *host.Planned, t *telemetry.Telemetry, b *machines.Backends, wiring []pipeline.Wiring,
	log *slog.Logger) (
	*service, error) {
	models, err := models(p.Opened, b, wiring, log)
	if err != nil {
		return nil, err
	}
	out := &service{
		telemetry: t, sequences: newSequences(p.Tables()), latest: p.FirstPlan(), planned: p.Spec(),
		unloaded: make(map[serving.AppID]bool), fixed: models, apps: len(p.Tables().Apps),
	}
	out.list()
	out.spec.Store(p.Spec())
	return out, nil
}

// Models implements server.Service.
func (s *service) Models() []*server.Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.models
}

// list joins the lists of models; s.mu is held.
func (s *service) list() {
	s.models = slices.Concat(s.fixed, s.deployed)
	s.byName = make(map[string]*server.Model, len(s.models))
	for _, m := range slices.Backward(s.models) { // of two with one name the first counts
		s.byName[m.Name] = m
	}
}

// show has clients see a model of the repository in place of that of its name; nil removes that.
func (s *service) show(name string, m *server.Model) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fixed := slices.Clone(s.fixed)
	at := slices.IndexFunc(fixed, func(x *server.Model) bool { return x.Name == name })
	switch {
	case at >= 0 && m != nil:
		fixed[at] = m
	case at >= 0:
		fixed = slices.Delete(fixed, at, at+1)
	case m != nil:
		fixed = append(fixed, m)
	}
	s.fixed = fixed
	s.list()
}

// adopt takes a spec that has grown, before a plan can have its new identifiers.
func (s *service) adopt(g *engine.Growth) {
	fresh := g.Spec.FreshSince(s.spec.Load())
	s.mu.Lock()
	for _, a := range fresh.Apps {
		delete(s.unloaded, a)
		s.sequences.remove(a)
	}
	s.mu.Unlock()
	s.objectives.drop(fresh.Variants)
	s.spec.Store(g.Spec)
}

// Lookup implements server.Service.
func (s *service) Lookup(name string) (*server.Model, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.byName[name]
	return m, ok
}

// Ready implements server.Service. It is true once every app of the configuration, and every function that the plan has
// an instance for, had a ready instance at every stage, and nothing was loading: the first queries then find every
// variant of the plan, and no load takes their cores. A load that has failed is not waited for. Apps whose models
// cannot be loaded do not count, unless readiness is strict. If queries start apps, apps count like functions. It does
// not turn false when an instance is lost or a variant loads; ModelReady does.
func (s *service) Ready() bool {
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	if ready {
		return true
	}
	planned, first := make(map[serving.AppID]bool), s.apps
	loading := false
	if !s.plane.Inspect(func(e *engine.Engine) {
		loading = slices.ContainsFunc(e.Fleet().Live(), loads)
		if e.Wakes() {
			first = 0
		}
		if made := e.Plan(); made != nil {
			for _, i := range made.Instances {
				planned[e.Spec().Stages[i.Stage].App] = true
			}
		}
	}) || loading {
		return false
	}
	for _, m := range s.Models() {
		for _, x := range m.All() {
			if x.Unloaded {
				continue
			}
			if x.Failed != "" || s.isBroken(x) {
				if s.strict {
					return false
				}
				continue
			}
			if (int(x.App) < first || planned[x.App]) && !s.ModelReady(x, "") {
				return false
			}
		}
	}
	s.mu.Lock()
	s.ready = true
	s.mu.Unlock()
	return true
}

// Unready implements server.Service. It names the apps that have no ready instance at a stage.
func (s *service) Unready() string {
	var all []*server.Model
	for _, m := range s.Models() {
		all = append(all, m.All()...)
	}
	for _, m := range all {
		switch failed := m.Failed != "" || s.isBroken(m); {
		case failed && s.strict:
			return fmt.Sprintf("model %q cannot be loaded: %s", m.Name, s.Reason(m, ""))
		case failed || m.Unloaded || s.ModelReady(m, ""):
			continue
		}
		return fmt.Sprintf("app %q has no ready instance at stage %q: the log has the reason", m.Name,
			s.readiness.of(s.plane).waitsFor(m))
	}
	return "not ready"
}

// loads reports whether an instance starts, or loads a variant that the plan wants and that there is room for.
func loads(i *fleet.Instance) bool {
	if i.State() == fleet.Launching {
		return true
	}
	for k := range i.Variants() {
		if v := i.Variant(k); v.Wanted && !v.Warm && !v.Delayed {
			return true
		}
	}
	return false
}

// ModelReady implements server.Service.
func (s *service) ModelReady(m *server.Model, version string) bool {
	pin, ok := m.Pin(version)
	return ok && m.Failed == "" && s.readiness.of(s.plane).ready(m, pin)
}

// isBroken reports whether a stage of a model's app has variants only that have failed to load.
func (s *service) isBroken(m *server.Model) bool { return s.readiness.of(s.plane).isBroken(m) }

// Reason implements server.Service.
func (s *service) Reason(m *server.Model, version string) string {
	switch {
	case m.Failed != "":
		return m.Failed
	case m.Unloaded || s.isUnloaded(m.App):
		return "unloaded"
	case s.ModelReady(m, version):
		return ""
	case s.isBroken(m):
		return "failed to load: the log of the server says why"
	}
	return "not loaded"
}

// isIdle reports whether no query is pending.
func (s *service) isIdle() (idle bool) {
	s.plane.Inspect(func(e *engine.Engine) { idle = e.Pending() == 0 })
	return idle
}

// settle returns when the engine has processed all inputs that were sent before.
func (s *service) settle() { s.plane.Inspect(func(*engine.Engine) {}) }
