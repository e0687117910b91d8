package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
	"github.com/sluice-serving/sluice/internal/runtime/openinference"
	"github.com/sluice-serving/sluice/internal/runtime/python"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/serving/profile"
)

// functionHost implements functions.Host over the data plane. Whatever comes, goes or is believed otherwise while the
// server runs does so by its Grow: functions, models of a repository, measurements and objectives.
type functionHost struct {
	profiled *host.Profiled
	run      *machines.Backends
	log      *slog.Logger
	manager  *functions.Manager
	kept     *store.Functions // nil where nothing is deployed
	refines  bool             // predicted latencies are measured later

	service  *service                 // once there is one
	restored []functions.Live         // until then
	models   map[string]*server.Model // that clients see, by name

	idleMu sync.Mutex
	idle   *functions.IdleTimes // nil without a store
}

// begin makes restored functions visible to clients.
func (h *functionHost) begin(s *service) {
	h.service = s
	h.show(h.restored)
	h.restored = nil
}

// Bind implements functions.Host.
func (h *functionHost) Bind(v serving.VariantID, f *functions.File) {
	h.run.Unbind(v) // another kind of model may have had its place
	h.run.Sent.Bind(v, sentModel(f))
	switch {
	case f.Python:
		for _, p := range h.run.Python {
			if p != nil {
				p.Bind(v, pythonModel(f))
			}
		}
	case h.run.Local != nil:
		h.run.Local.Bind(v, onnx.Model{Path: f.Path, NoBatch: !f.Batched})
	}
}

// sentModel is a deployed file as servers of others get it.
func sentModel(f *functions.File) openinference.SentModel {
	m := openinference.SentModel{
		Name: "fn-" + shortSum(f), Path: f.Path, Python: f.Python, Class: f.Class,
	}
	if f.Batched {
		m.MaxBatch = max(f.MaxBatch, 1)
		m.Name += fmt.Sprint("-b", m.MaxBatch)
	}
	if f.Class != "" {
		m.Name += "-" + f.Class
	}
	return m
}

// shortSum is the beginning of the sum of a file's content, which is its name.
func shortSum(f *functions.File) string {
	return fmt.Sprintf("%.12s", strings.TrimSuffix(filepath.Base(f.Path), filepath.Ext(f.Path)))
}

// pythonModel is a deployed file of Python as a model.
func pythonModel(f *functions.File) python.Model {
	return python.Model{Name: shortSum(f), Source: python.Stored(f.Path, f.Class)}
}

// Describe implements functions.Host.
func (h *functionHost) Describe(ctx context.Context, f *functions.File) (*repository.Described, int, error) {
	at := slices.IndexFunc(h.run.Python, func(p *python.Backend) bool { return p != nil })
	if at < 0 || !h.profiled.Fleet().TakesPython() {
		return nil, 0, errors.New("this server takes no models in Python: they are code that it would run, so a " +
			"worker must be for them (workers[].backend.kind: python)")
	}
	m := pythonModel(f)
	i, err := h.run.Python[at].Describe(ctx, &m)
	if err == nil && i.Inputs == nil {
		err = errors.New("the class does not say what its inputs are: give it an attribute inputs (docs/python.md)")
	}
	return &repository.Described{Inputs: i.Inputs, Outputs: i.Outputs, Batched: i.Batched}, i.MaxBatch, err
}

// Unbind implements functions.Binder.
func (h *functionHost) Unbind(v serving.VariantID) { h.run.Unbind(v) }

// Plan implements functions.Host. It asks a planner of its own, for the demand that the configuration expects.
func (h *functionHost) Plan(ctx context.Context, g *engine.Growth) (*plan.Plan, error) {
	s, p := h.service, h.profiled
	r := plan.Request{Spec: g.Spec, Rates: p.Demand(), Known: &g.Known}
	for a := range r.Rates {
		if g.Spec.Apps[a].Generation > 0 {
			r.Rates[a] = 0 // another app has the place
		}
	}
	r.Rates = p.System().AtLeast(append(r.Rates, make([]float64, len(g.Spec.Apps)-len(r.Rates))...))
	if p.System().Options.Learn {
		r.Beliefs = profile.NewLearned(g.Spec, g.Profile).Frozen()
	}
	r.Spec = profile.Stretched(r.Spec, r.Believed(g.Profile), nil)
	s.planning.Lock() // planners may share a solver
	defer s.planning.Unlock()
	untried := p.System()
	untried.Options.Renting.Trials = -1 // whether there is a plan, not the best one
	planner, err := p.OpenPlanner(untried, p.Policies())
	if err != nil {
		return nil, err
	}
	made, err := dataplane.MakePlan(ctx, planner, r)
	if panicked := (*dataplane.Panic)(nil); errors.As(err, &panicked) {
		s.trouble(err)
	}
	return made, err
}

// Grow implements functions.Host. Clients see a new function after the engine knows it. A deleted one disappears for
// clients before the engine drops it.
func (h *functionHost) Grow(g *engine.Growth, wiring []pipeline.Wiring, open []functions.Live) error {
	gone := len(open) < len(h.models)
	if gone {
		h.show(open)
	}
	h.service.adopt(g)
	if err := h.service.plane.Grow(g, wiring); err != nil {
		return err
	}
	for _, x := range h.recall(g.Spec) {
		h.service.plane.Recall(x)
	}
	h.service.settle()
	if !gone {
		h.show(open)
	}
	return nil
}

// show replaces the functions that clients see.
func (h *functionHost) show(open []functions.Live) {
	shown := make(map[string]*server.Model, len(open))
	s := h.service
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*server.Model
	for k := range open {
		l := &open[k]
		m := h.models[l.Name]
		if m == nil || m.App != l.App || m.Versions[0].Variant != l.Variant {
			m = functionModel(s.spec.Load(), l, h.manager, m)
		}
		shown[l.Name] = m
		list = append(list, m)
	}
	s.deployed, h.models = list, shown
	s.list()
}

// Free implements functions.Host.
func (h *functionHost) Free() (out serving.Free) {
	h.service.plane.Inspect(func(e *engine.Engine) { out = e.Free() })
	return out
}

// State implements functions.Host.
func (h *functionHost) State(l *functions.Live) (state string, ready int) {
	state = functions.Planning
	h.service.plane.Inspect(func(e *engine.Engine) {
		if !e.Planned() || int(l.App) >= len(e.Spec().Apps) {
			return
		}
		s := e.Spec().Source(l.App)
		state = functions.Idle
		if e.Plan() != nil {
			for _, i := range e.Plan().Instances {
				if i.Stage == s {
					state = functions.Starting
				}
			}
		}
		for _, i := range e.Fleet().Ready(s) {
			if i.ServesPinned(l.Variant) {
				ready++
			}
		}
		switch {
		case ready > 0:
			state = functions.Ready
		case e.Broken(l.Variant):
			state = functions.Failing
		}
	})
	return state, ready
}
