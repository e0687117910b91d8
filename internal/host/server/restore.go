package server

import (
	"context"
	"time"

	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/papers/infless/operators"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// restoreFunctions opens the store and makes the first plan for the apps of the file and the functions of the store.
func (s *Server) restoreFunctions(ctx context.Context, p *host.Profiled, run *machines.Backends) error {
	kept, err := store.OpenFunctions(p.File().Path(p.File().Store))
	if err != nil {
		return err
	}
	s.onRelease(kept.Close)
	if lost := kept.Lost(); lost != "" {
		s.log.Error("the store was damaged: deploy its functions again", "lost", lost)
	}
	h, err := s.newFunctionHost(ctx, p, kept, run)
	if err != nil {
		return err
	}
	for _, lost := range h.manager.Unrestored() {
		s.log.Error("a function is left out: deploy it again or delete it", "error", lost)
	}
	g, live, err := h.manager.Current()
	if err != nil {
		return err
	}
	h.restored = live
	var damaged []error
	if h.idle, damaged, err = functions.OpenIdleTimes(kept, time.Now()); err != nil {
		return err
	}
	for _, x := range damaged {
		s.log.Warn("a server's memory", "error", x)
	}
	s.functions = h
	s.planned, err = s.planOrNothing(ctx, p.Grown(g.Spec, g.Measurements, g.Profile))
	return err
}

// newFunctionHost returns what apps come and go by in a running server. kept is nil where nothing is deployed to it.
func (s *Server) newFunctionHost(ctx context.Context, p *host.Profiled, kept *store.Functions,
	run *machines.Backends) (*functionHost, error) {
	h := &functionHost{
		profiled: p, run: run, kept: kept, log: s.log, refines: !p.System().Options.Learn,
		models: make(map[string]*server.Model),
	}
	c, err := functionsConfig(p, kept, run, h)
	if err != nil {
		return nil, err
	}
	c.Trouble = s.trouble
	h.manager, err = functions.Restore(ctx, c, h)
	return h, err
}

// functionsConfig is the configuration of the functions' manager.
func functionsConfig(p *host.Profiled, kept *store.Functions, run *machines.Backends, h functions.Binder) (
	functions.Config, error) {
	statistic, err := profile.ParseStatistic(host.PlannedStatistic)
	if err != nil {
		return functions.Config{}, err
	}
	here := run.ThisHost()
	c := functions.Config{
		Store: kept, Statistic: statistic, Spec: p.Spec(), Measurements: p.Measurements(),
		App: serving.App{
			Weight: 1, QueueLimit: config.DefaultQueueLimit, Slack: time.Duration(p.File().System.Slack),
		},
		Predictor: &functions.Measured{Backend: run.Of, Models: h, Host: here},
	}
	if p.File().System.Late == "serve-late" {
		c.App.Late = serving.ServeLate
	}
	if run.Local == nil || kept == nil {
		return c, nil
	}
	times, err := operators.OpenTable(kept.Table(store.OperatorTable), here)
	if err != nil {
		return c, err
	}
	c.Quick = &functions.Predicted{Runtime: run.Local, Store: times, Host: here, Runs: p.Fleet().RunsHere}
	return c, nil
}

// planOrNothing makes the first plan, or an empty one if there is none. A function that can no longer be planned for
// must not keep the server from starting, since only a running server can delete it.
func (s *Server) planOrNothing(ctx context.Context, p *host.Profiled) (*host.Planned, error) {
	planned, missed, err := p.PlanOrEmpty(ctx)
	if missed != nil {
		s.log.Error("no plan can be made: nothing runs until one can", "error", missed)
	}
	return planned, err
}
