package host

import (
	"context"
	"time"

	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/papers/infless/operators"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// restoreFunctions opens the store and makes the first plan for the apps of the file and the functions of the store.
func (s *Server) restoreFunctions(ctx context.Context, p *Profiled, run *backends) error {
	kept, err := store.OpenFunctions(p.file.Path(p.file.Store))
	if err != nil {
		return err
	}
	s.onRelease(kept.Close)
	if lost := kept.Lost(); lost != "" {
		s.log.Error("the store was damaged: deploy its functions again", "lost", lost)
	}
	h := &functionHost{
		profiled: p, local: run.local, python: run.python, unbind: run.unbind, log: s.log,
		refines: !p.system.Options.Learn,
		models:  make(map[string]*server.Model),
	}
	c, err := p.functionsConfig(kept, run, h)
	if err != nil {
		return err
	}
	c.Trouble = s.trouble
	if h.manager, err = functions.Restore(ctx, c, h); err != nil {
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
	grown := p.With(func(t *config.Resolved) { t.Spec = g.Spec })
	grown.measurements, grown.latencies = g.Measurements, g.Profile
	s.planned, err = s.planOrNothing(ctx, grown)
	return err
}

// functionsConfig is the configuration of the functions' manager.
func (p *Profiled) functionsConfig(kept *store.Functions, run *backends, h functions.Binder) (
	functions.Config, error) {
	statistic, err := profile.ParseStatistic(plannedStatistic)
	if err != nil {
		return functions.Config{}, err
	}
	here := run.thisHost()
	c := functions.Config{
		Store: kept, Statistic: statistic, Spec: p.Spec(), Measurements: p.measurements,
		App: serving.App{
			Weight: 1, QueueLimit: config.DefaultQueueLimit, Slack: time.Duration(p.file.System.Slack),
		},
		Predictor: &functions.Measured{Backend: run.of, Models: h, Host: here},
	}
	if p.file.System.Late == "serve-late" {
		c.App.Late = serving.ServeLate
	}
	if run.local == nil || kept == nil {
		return c, nil
	}
	times, err := operators.OpenTable(kept.Table(store.OperatorTable), here)
	if err != nil {
		return c, err
	}
	c.Quick = &functions.Predicted{Runtime: run.local, Store: times, Host: here, Runs: p.runsHere}
	return c, nil
}

// planOrNothing makes the first plan, or an empty one if there is none. A function that can no longer be planned for
// must not keep the server from starting, since only a running server can delete it.
func (s *Server) planOrNothing(ctx context.Context, p *Profiled) (*Planned, error) {
	planned, err := p.withPlanner()
	if err != nil {
		return nil, err
	}
	if err = planned.makeFirst(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("no plan can be made: nothing runs until one can", "error", err)
		planned.first, err = plan.Empty(planned.planner.Name(), nil), nil
	}
	return planned, err
}
