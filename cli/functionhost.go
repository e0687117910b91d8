package cli

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/api/server"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/host/functions"
	"github.com/sluice-serving/sluice/host/store"
	"github.com/sluice-serving/sluice/measure/profiler"
	"github.com/sluice-serving/sluice/measure/profiler/operators"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/runtime/onnx"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/systems"
)

// functionHost is the running server as functions see it.
type functionHost struct {
	world    *world
	local    *onnx.Backend
	platform *platform        // once there is one
	restored []functions.Live // until then
	models   map[string]*server.Model
	log      *slog.Logger
	measure  bool // what was predicted is measured later

	remembering sync.Mutex
	idle        *functions.IdleTimes // nil without a store
}

// functions opens the store, if there is one, and takes the functions in it into the world.
func (r *running) functions(e *Env, host *functionHost, runtimes *backends) (closing func() error, err error) {
	w := r.world
	if w.file.Store == "" {
		return func() error { return nil }, nil
	}
	kept, err := store.OpenFunctions(w.file.Path(w.file.Store))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, kept.Close())
		}
	}()
	statistic, err := profile.ParseStatistic(believed)
	if err != nil {
		return nil, err
	}
	version := ""
	if runtimes.local != nil {
		version = onnx.Version()
	}
	s := &w.file.System
	common := serving.App{Weight: 1, QueueLimit: 1000, Slack: time.Duration(s.Slack)}
	if s.Late == "serve-late" {
		common.Late = serving.ServeLate
	}
	host.measure = !w.system.Options.Learn
	var quick functions.Predictor
	if runtimes.local != nil {
		times, err := operators.OpenShelf(kept.Table(store.OperatorTable), profiler.ThisHost(version))
		if err != nil {
			return nil, err
		}
		quick = &functions.Predicted{
			Runtime: runtimes.local, Store: times, Host: profiler.ThisHost(version), Cores: 1, Runs: w.runsHere,
		}
	}
	w.functions, err = functions.Restore(e.Context, functions.Config{Store: kept, Statistic: statistic, Spec: w.Spec,
		Measurements: w.measurements, App: common,
		Predictor: &functions.Measured{
			Backend: runtimes.of, Host: profiler.ThisHost(version), Cores: 1,
		}, Quick: quick}, host)
	if err != nil {
		return nil, err
	}
	for _, lost := range w.functions.Lost() {
		r.log.Error("a function is left out: deploy it again or delete it", "error", lost)
	}
	g, live, err := w.functions.World()
	if err != nil {
		return nil, err
	}
	host.restored = live
	var damaged []error
	if host.idle, damaged, err = functions.OpenIdleTimes(kept, time.Now()); err != nil {
		return nil, err
	}
	for _, x := range damaged {
		r.log.Warn("a server's memory", "error", x)
	}
	w.Spec, w.measurements, w.profile = g.Spec, g.Measurements, g.Profile
	if err := w.replan(); err != nil {
		if w.planner == nil || e.Context.Err() != nil {
			return nil, err
		}
		// A function that cannot be planned for any more must not keep the server from starting: it can be deleted.
		r.log.Error("no plan can be made: nothing runs until one can", "error", err)
		w.plan = plan.Nothing(w.planner.Name(), nil)
	}
	return kept.Close, nil
}

// begin shows the functions that were restored to clients.
func (h *functionHost) begin(p *platform) {
	h.platform, h.models = p, make(map[string]*server.Model)
	h.show(h.restored)
}

// Bind implements functions.Host.
func (h *functionHost) Bind(v serving.VariantID, path string, batched bool) {
	if h.local != nil {
		h.local.Bind(v, onnx.Model{Path: path, NoBatch: !batched})
	}
}

// recall returns what an earlier run learned of the apps of a world and nobody has taken up yet.
func (h *functionHost) recall(spec *serving.Spec) []engine.Recalled {
	h.remembering.Lock()
	defer h.remembering.Unlock()
	if h.idle == nil {
		return nil
	}
	trial, err := systems.NewScaler(h.world.system.Scaler, h.world.system.Options)
	r, ok := trial.(scale.Recaller)
	if err != nil || !ok {
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

// idleEvery is how often idle times are saved that have changed.
const idleEvery = 5 * time.Second

// remember saves what was learned of idle times until over is closed.
func (h *functionHost) remember(over <-chan struct{}) {
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			h.save()
		}
	}
}

// save keeps what was learned since the last time.
func (h *functionHost) save() {
	h.remembering.Lock()
	defer h.remembering.Unlock()
	p := h.platform.plane
	err := h.idle.Save(func(look func(*engine.Engine, serving.Time)) bool {
		return p.Inspect(func(e *engine.Engine) { look(e, p.Now()) })
	}, time.Now())
	if err != nil {
		h.log.Error("idle times are not kept", "error", err)
	}
}

// quiet tells whether nothing is being served.
func (h *functionHost) quiet() (quiet bool) {
	h.platform.plane.Inspect(func(e *engine.Engine) { quiet = e.Pending() == 0 })
	return quiet
}

// runsHere tells whether a worker runs models in this process.
func (w *world) runsHere(worker serving.WorkerID) bool {
	kind := w.Backends[worker].Kind
	return kind != "fake" && kind != "openinference"
}

// Feasible implements functions.Host: with a planner of its own, and the demand that is expected.
func (h *functionHost) Feasible(ctx context.Context, g *engine.Growth) error {
	w := h.world
	believed := g.Profile
	r := plan.Request{Spec: g.Spec, Rates: append(w.demand(), make([]float64, len(g.Spec.Apps)-len(w.Apps))...)}
	if w.system.Options.Learn {
		learned := profile.NewLearned(g.Spec, g.Profile)
		believed, r.Beliefs = learned, learned.Frozen()
	}
	h.platform.planning.Lock() // planners may share a solver
	defer h.platform.planning.Unlock()
	open := g.Spec.Open()
	p, err := w.plannerOf(w.system, profile.Renumbered{Profile: believed, Variants: open.Variants})
	if err != nil {
		return err
	}
	_, err = p.Plan(ctx, r.Restricted(open))
	return err
}

// Grow implements functions.Host. Clients see what is new once the engine knows it, and no more of what is gone before
// it does.
func (h *functionHost) Grow(g *engine.Growth, open []functions.Live) error {
	gone := len(open) < len(h.models)
	if gone {
		h.show(open)
	}
	h.platform.spec.Store(g.Spec) // before a plan can speak of what is new
	if err := h.platform.plane.Grow(g); err != nil {
		return err
	}
	for _, x := range h.recall(g.Spec) {
		h.platform.plane.Recall(x)
	}
	// what was handed in before is stepped before the next question is heard
	h.platform.plane.Inspect(func(*engine.Engine) {})
	if !gone {
		h.show(open)
	}
	return nil
}

// show replaces the functions that clients see.
func (h *functionHost) show(open []functions.Live) {
	shown := make(map[string]*server.Model, len(open))
	p := h.platform
	p.mu.Lock()
	defer p.mu.Unlock()
	list := append([]*server.Model(nil), p.models[:p.fixed]...)
	for k := range open {
		l := &open[k]
		m := h.models[l.Name]
		if m == nil || m.App != l.App || m.Versions[0].Variant != l.Variant {
			m = functionModel(l, p.world.functions, m)
		}
		shown[l.Name] = m
		list = append(list, m)
	}
	p.models, h.models = list, shown
}

// functionModel describes a function to clients. was is the version that it replaces, or nil.
func functionModel(l *functions.Live, m *functions.Manager, was *server.Model) *server.Model {
	out := &server.Model{Name: l.Name, App: l.App, Platform: "onnxruntime_onnx", Inputs: l.Inputs, Outputs: l.Outputs,
		Batched: l.Batched, MaxBatch: m.MaxBatch(l),
		Versions: []server.Version{
			{
				Variant: l.Variant, Name: functions.VariantName(l.Name, l.Version), Version: strconv.Itoa(l.Version),
				Accuracy: 1,
			},
		}}
	if was != nil && was.App == l.App {
		out.Former = append(append([]server.Version(nil), was.Former...), was.Versions...)
	}
	return out
}

// Watch implements functions.Host.
func (h *functionHost) Watch(l *functions.Live) (state string, ready int) {
	state = functions.Planning
	h.platform.plane.Inspect(func(e *engine.Engine) {
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
			if at := i.Find(l.Variant); at >= 0 && i.Variants[at].Warm && i.Variants[at].Wanted {
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
