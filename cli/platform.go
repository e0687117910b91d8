package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-serving/sluice/api/server"
	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/measure/telemetry"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/runtime/onnx"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// platform is what the front ends see of a running world.
type platform struct {
	world *world
	plane *dataplane.Plane
	told  *telemetry.Telemetry
	spec  atomic.Pointer[serving.Spec] // in force
	local *onnx.Backend                // nil when no worker runs models in this process

	planning sync.Mutex // held while a plan is made

	mu       sync.Mutex
	models   []*server.Model // of the configuration, then of functions; the list is never changed, but replaced
	fixed    int             // how many are of the configuration
	latest   *plan.Plan      // as the planner made it
	unloaded map[serving.AppID]bool
	ready    bool // every app has answered its readiness once: the server stays ready from then on
}

// newPlatform returns the platform of a world; its plane is set once there is one.
func newPlatform(w *world, t *telemetry.Telemetry, b *backends, wiring []dataplane.Wiring) (*platform, error) {
	out := &platform{
		world: w, told: t, local: b.local, latest: w.plan, unloaded: make(map[serving.AppID]bool), fixed: len(w.Apps),
	}
	out.spec.Store(w.Spec)
	for a := range w.Apps {
		m := w.model(serving.AppID(a), b)
		if len(w.Spec.Apps[a].Stages) > 1 {
			inputs, outputs, err := dataplane.Interface(w.Spec, wiring, serving.AppID(a))
			if err != nil {
				return nil, &status{ExitConfig, err}
			}
			if w.Apps[a].Inputs == nil {
				m.Inputs = inputs
			}
			if w.Apps[a].Outputs == nil {
				m.Outputs = outputs
			}
		}
		out.models = append(out.models, m)
	}
	return out, nil
}

// model describes an app to clients. Its versions are the variants of the app's last stage: the ones that answer.
func (w *world) model(a serving.AppID, b *backends) *server.Model {
	app := &w.Spec.Apps[a]
	info := &w.Apps[a]
	m := &server.Model{
		Name: app.Name, App: a, Platform: "onnxruntime_onnx", Inputs: info.Inputs, Outputs: info.Outputs,
		Batched: info.Batched, MaxBatch: 1,
	}
	first, last := app.Stages[0], app.Stages[len(app.Stages)-1]
	if first != last {
		m.Platform = server.Ensemble
	}
	for _, v := range w.Spec.Stages[first].Variants {
		m.MaxBatch = max(m.MaxBatch, w.Spec.Variants[v].MaxBatch)
		if m.Inputs == nil {
			if inputs, outputs, batched, err := b.describe(v); err == nil {
				m.Inputs, m.Batched = inputs, batched
				if first == last {
					m.Outputs = outputs
				}
			}
		}
	}
	for _, s := range app.Stages[:len(app.Stages)-1] {
		for _, v := range w.Spec.Stages[s].Variants {
			m.Within = append(m.Within, server.Version{
				Variant: v, Name: w.Spec.Variants[v].Name, Accuracy: w.Spec.Variants[v].Accuracy,
			})
		}
	}
	for k, v := range w.Spec.Stages[last].Variants {
		m.Versions = append(m.Versions, server.Version{
			Variant: v, Name: w.Spec.Variants[v].Name, Version: strconv.Itoa(k + 1),
			Accuracy: w.Spec.Variants[v].Accuracy,
		})
	}
	return m
}

// Ready implements server.Platform: true once every app of the configuration, and every function that the plan has an
// instance for, had a ready instance at every stage; where queries start apps, apps count as functions do. It does not
// turn false when an instance is lost or a variant loads: single models have a readiness of their own.
func (p *platform) Ready() bool {
	p.mu.Lock()
	ready := p.ready
	p.mu.Unlock()
	if ready {
		return true
	}
	wanted, first := make(map[serving.AppID]bool), p.fixed
	if !p.plane.Inspect(func(e *engine.Engine) {
		if e.Wakes() {
			first = 0
		}
		if made := e.Plan(); made != nil {
			for _, i := range made.Instances {
				wanted[e.Spec().Stages[i.Stage].App] = true
			}
		}
	}) {
		return false
	}
	for _, m := range p.Models() {
		if (int(m.App) < first || wanted[m.App]) && !p.ModelReady(m, "") {
			return false
		}
	}
	p.mu.Lock()
	p.ready = true
	p.mu.Unlock()
	return true
}

// Models implements server.Platform.
func (p *platform) Models() []*server.Model {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.models
}

// Lookup implements server.Platform.
func (p *platform) Lookup(name string) (*server.Model, bool) {
	for _, m := range p.Models() {
		if m.Name == name {
			return m, true
		}
	}
	return nil, false
}

// ModelReady implements server.Platform.
func (p *platform) ModelReady(m *server.Model, version string) bool {
	pin, ok := m.Pin(version)
	if !ok {
		return false
	}
	ready := false
	p.plane.Inspect(func(e *engine.Engine) {
		if int(m.App) >= len(e.Spec().Apps) {
			return
		}
		ready = true
		stages := e.Spec().Apps[m.App].Stages
		for at, s := range stages {
			want := serving.VariantID(serving.None)
			if at == len(stages)-1 {
				want = pin
			}
			ready = ready && slices.ContainsFunc(e.Fleet().Ready(s), func(i *fleet.Instance) bool {
				return want == serving.None && i.Active() >= 0 || i.Serves(want)
			})
		}
	})
	return ready
}

// Infer implements server.Platform.
func (p *platform) Infer(ctx context.Context, r *dataplane.Request) (*dataplane.Response, error) {
	return p.plane.Infer(ctx, r)
}

// Load implements server.Platform: the app's instances come up again; it returns when the model is ready.
func (p *platform) Load(ctx context.Context, m *server.Model) error {
	p.set(m.App, false)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !p.ModelReady(m, "") {
		select {
		case <-ctx.Done():
			return fmt.Errorf("model %q is not ready yet: %w", m.Name, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// Unload implements server.Platform: queries that were accepted are answered, then the app's instances are released.
func (p *platform) Unload(_ context.Context, m *server.Model) error {
	p.set(m.App, true)
	return nil
}

func (p *platform) set(a serving.AppID, unloaded bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unloaded[a] = unloaded
	p.plane.Adopt(p.withhold())
}

// withhold returns the last plan without the instances of apps that were unloaded by hand. The others keep their place
// in their worker's list, and with it their identity, so that they are left alone. p.mu is held.
func (p *platform) withhold() *plan.Plan {
	next := *p.latest
	next.Instances = slices.DeleteFunc(slices.Clone(next.Instances), func(i plan.Instance) bool {
		return p.unloaded[p.spec.Load().Stages[i.Stage].App]
	})
	return &next
}

// withholding is a planner whose plans leave out what was unloaded by hand. It makes one plan at a time: planners may
// remember.
type withholding struct {
	plan.Planner
	platform *platform
}

// Plan implements plan.Planner.
func (w withholding) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	p := w.platform
	p.planning.Lock()
	made, err := w.Planner.Plan(ctx, r)
	p.planning.Unlock()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latest = made
	return p.withhold(), nil
}

// Statistics implements server.Platform.
func (p *platform) Statistics(m *server.Model) []server.VersionStatistics {
	return statistics(p.told, m)
}

// statistics turns the counters of an app's variants into those of its versions.
func statistics(t *telemetry.Telemetry, m *server.Model) []server.VersionStatistics {
	var out []server.VersionStatistics
	for _, x := range t.Statistics(m.App) {
		v, ok := m.Version(x.Variant)
		if !ok {
			continue // of an earlier stage: no version of its own
		}
		s := server.VersionStatistics{Version: v.Version, LastInference: x.LastMS, InferenceCount: x.InferenceCount,
			ExecutionCount: x.ExecutionCount,
			Success:        x.Success, SuccessNS: x.SuccessNS, Fail: x.Fail, FailNS: x.FailNS, Queue: x.Queue,
			QueueNS: x.QueueNS, Compute: x.Compute, ComputeNS: x.ComputeNS}
		for _, b := range x.Batches {
			s.Batches = append(s.Batches, server.BatchStatistics{Size: b.Size, Count: b.Count, NS: b.NS})
		}
		out = append(out, s)
	}
	return out
}
