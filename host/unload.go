package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/api/server"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// readyEvery is the time between two checks while a caller waits for readiness.
const readyEvery = 20 * time.Millisecond

// Load implements server.Service: it launches the app's instances again and returns when the model is ready.
func (s *service) Load(ctx context.Context, m *server.Model) error {
	s.setUnloaded(m, false)
	ready := func(x *server.Model) bool { return x.Failed != "" || s.ModelReady(x, "") }
	if err := waitFor(ctx, func() bool { return !slices.ContainsFunc(m.All(), not(ready)) }); err != nil {
		return fmt.Errorf("model %q is not ready yet: %w", m.Name, err)
	}
	return nil
}

// waitFor returns when is returns true, or with ctx's error.
func waitFor(ctx context.Context, is func() bool) error {
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for !is() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// Unload implements server.Service: queries that were accepted are answered, then the app's instances are released.
func (s *service) Unload(_ context.Context, m *server.Model) error {
	s.setUnloaded(m, true)
	return nil
}

func not(is func(*server.Model) bool) func(*server.Model) bool {
	return func(m *server.Model) bool { return !is(m) }
}

// setUnloaded loads or unloads all versions of a model.
func (s *service) setUnloaded(m *server.Model, unloaded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range m.All() {
		if x.Failed == "" {
			s.unloaded[x.App] = unloaded
		}
	}
	s.plane.Adopt(s.loadedPlan())
}

// isUnloaded reports whether a client has unloaded an app.
func (s *service) isUnloaded(a serving.AppID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unloaded[a]
}

// loadedPlan is the latest plan without the instances of apps that were unloaded. The others keep their place in their
// worker's list, and with it their identity, so they are not restarted. s.mu is held.
func (s *service) loadedPlan() *plan.Plan {
	next := *s.latest
	next.Instances = slices.DeleteFunc(slices.Clone(next.Instances), func(i plan.Instance) bool {
		return s.unloaded[s.spec.Load().Stages[i.Stage].App]
	})
	return &next
}

// loadedPlanner is a planner whose plans leave out unloaded apps. It makes one plan at a time.
type loadedPlanner struct {
	plan.Planner
	service *service
}

// Plan implements plan.Planner.
func (p loadedPlanner) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	s := p.service
	s.planning.Lock()
	made, err := p.Planner.Plan(ctx, r)
	s.planning.Unlock()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = made
	return s.loadedPlan(), nil
}
