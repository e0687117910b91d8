package server

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// readyEvery is the time between two checks while a caller waits for readiness.
const readyEvery = 20 * time.Millisecond

// Load implements server.Service. A model of the repository is read anew if its files have changed; the models that an
// ensemble is made of are loaded with it.
func (s *service) Load(ctx context.Context, name string, how server.Loading) error {
	if s.catalog == nil {
		m, ok := s.Lookup(name)
		switch {
		case !ok:
			return oip.Errorf(oip.NotFound, "", "failed to poll from model repository: there is no such model")
		case how.Config != nil || len(how.Files) > 0:
			return oip.Errorf(oip.Unsupported, "parameters", "a configuration or files can be given for models that "+
				"run in this process, from a repository")
		case m.Failed != "":
			return oip.Errorf(oip.Internal, "", "%s", m.Failed)
		}
		return s.reload(ctx, m)
	}
	if s.isDeployed(name) {
		m, _ := s.Lookup(name)
		return s.reload(ctx, m)
	}
	if err := s.mayChange(); err != nil {
		return err
	}
	if err := s.catalog.load(ctx, name, how); err != nil {
		return err
	}
	for _, x := range s.catalog.members(name) {
		if s.catalog.belongs(x) {
			continue
		}
		if err := s.catalog.load(ctx, x, server.Loading{}); err != nil {
			return err
		}
	}
	return nil
}

// mayChange returns an error where the repository alone says what is served.
func (s *service) mayChange() error {
	if s.catalog != nil && s.catalog.base.File().Models.Control == config.ControlPoll {
		return oip.Errorf(oip.Unavailable, "", "explicit model load / unload is not allowed if polling is enabled")
	}
	return nil
}

// isDeployed reports whether a model is a function, or a chain of them.
func (s *service) isDeployed(name string) bool {
	if s.chains.has(name) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.deployed, func(m *server.Model) bool { return m.Name == name })
}

// Unused implements server.Service.
func (s *service) Unused() []string {
	if s.catalog == nil {
		return nil
	}
	return s.catalog.unused()
}

// reload launches the app's instances again and returns as awaitReady does.
func (s *service) reload(ctx context.Context, m *server.Model) error {
	s.setUnloaded(m, false)
	return s.awaitReady(ctx, m)
}

// startTimeout bounds how long a model that is loaded into a running server may take to become ready.
const startTimeout = 5 * time.Minute

// awaitReady waits until a model is ready, or cannot be. A system that starts instances with the first query is not
// waited for.
func (s *service) awaitReady(ctx context.Context, m *server.Model) error {
	ctx, done := context.WithTimeout(ctx, startTimeout)
	defer done()
	if s.wakes() {
		return nil
	}
	var broken *server.Model
	err := waitFor(ctx, func() bool {
		ready := true
		for _, x := range m.All() {
			if s.isBroken(x) {
				broken = x
				return true
			}
			ready = ready && (x.Failed != "" || s.ModelReady(x, ""))
		}
		return ready
	})
	switch {
	case broken != nil:
		return oip.Errorf(oip.Internal, "", "it cannot be loaded or warmed up: the log of the server says why")
	case err != nil:
		return oip.Errorf(oip.Unavailable, "", "it did not become ready: %v", err)
	}
	return nil
}

// wakes reports whether the system starts instances with the first query.
func (s *service) wakes() (wakes bool) {
	s.plane.Inspect(func(e *engine.Engine) { wakes = e.Wakes() })
	return wakes
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

// Unload implements server.Service: queries that were accepted are answered, then the app's instances are released. A
// model of the catalog leaves the tables with them: a server may load and unload any number of models.
func (s *service) Unload(ctx context.Context, m *server.Model, members bool) error {
	if err := s.mayChange(); err != nil {
		return err
	}
	if s.catalog == nil || s.isDeployed(m.Name) {
		s.setUnloaded(m, true)
		return nil
	}
	names := []string{m.Name}
	if members {
		names = append(names, s.catalog.members(m.Name)...)
	}
	for _, name := range names {
		if err := s.catalog.unload(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// setUnloaded loads or unloads all versions of a model, and returns when the engine knows.
func (s *service) setUnloaded(m *server.Model, unloaded bool) {
	defer s.settle()
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
		return s.unloaded[s.planned.Stages[i.Stage].App]
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
	made, err := dataplane.MakePlan(ctx, p.Planner, r)
	s.planning.Unlock()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest, s.planned = made, r.Spec
	return s.loadedPlan(), nil
}
