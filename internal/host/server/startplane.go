package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/internal/measure/telemetry"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// policyTimeout bounds the time to make policies in a running server. After the loss of a worker a whole set is made;
// the policies in force are used meanwhile.
const policyTimeout = 5 * time.Minute

// startPlane starts the data plane, its observers, and the service that the HTTP and gRPC servers call.
func (s *Server) startPlane(ctx context.Context, run *machines.Backends, o Options) error {
	p := s.planned
	s.checkInstances(p)
	if err := run.CheckEachQuery(ctx); err != nil {
		return err
	}
	e, err := p.Engine()
	if err != nil {
		return err
	}
	observe, err := s.watch(o)
	if err != nil {
		return err
	}
	e.Watch(s.steps.Weigh)
	wiring := run.Wiring(ctx, s.log)
	if s.service, err = newService(p, s.telemetry, run, wiring, s.log); err != nil {
		return err
	}
	s.service.strict, s.service.tracer, s.service.trouble = o.Strict, s.tracer, s.trouble
	if s.service.recorder, err = s.openRecorder(); err != nil {
		return err
	}
	s.service.shadow = newShadow(p.File().Server.Shadow, s.service, s.log)
	states, err := s.openStates()
	if err != nil {
		return err
	}
	service := s.service
	seen := func(now serving.Time, in []engine.Input, out []engine.Decision) {
		observe(now, in, out)
		service.readiness.observe(e)
	}
	limits := &p.File().Server.Limits
	c := dataplane.Config{
		Spec: p.Spec(), Engine: e, Backend: run.Of, Initial: p.FirstPlan(), Planner: loadedPlanner{p.PlannerInUse(),
			s.service},
		Outcome: s.telemetry.Outcome, Observe: seen, Wiring: wiring,
		Trouble: s.trouble, Crash: s.crash,
		Rows: limits.Rows, Output: int64(limits.Output), State: int(limits.State),
		StatesHeld: int64(limits.AllStates),
		States:     states,
	}
	c.Slack = dataplane.LearnedSlack
	if p.File().SaysSlack() {
		c.Slack = dataplane.GivenSlack
	}
	if p.PlannerInUse().Provides()&plan.Tables != 0 {
		c.PlanTimeout = policyTimeout
	}
	if s.functions != nil {
		c.Recalled = s.functions.recall(p.Spec())
	}
	if s.plane, err = dataplane.New(c); err != nil {
		return err
	}
	s.run = run
	s.onRelease(func() error { s.closePlane(); return nil })
	s.service.plane = s.plane
	s.startMachines(run, o.Starts)
	if s.functions != nil {
		s.functions.begin(s.service)
	}
	return s.openCatalog(run)
}

// trouble logs what went wrong, counts panics, and keeps why loads failed.
func (s *Server) trouble(err error) {
	if p := (*dataplane.Panic)(nil); errors.As(err, &p) {
		s.telemetry.Panicked(p.What)
		s.log.Error("a panic: what runs goes on, please report this", "error", err, "stack", string(p.Stack))
		return
	}
	s.log.Error("trouble", "error", err)
	var failed *dataplane.LoadError
	if errors.As(err, &failed) {
		s.loadErrors.Store(failed.Variant, failed.Error())
	}
}

// crash has the journal and the log say why the engine ends, and with it the process.
func (s *Server) crash(now serving.Time, in []engine.Input, p *dataplane.Panic) {
	var missed error
	if s.journal != nil {
		missed = s.journal.Crash(now, in, p.Error())
	}
	s.log.Error("the server ends: please report this, with the journal if there is one (telemetry.journal)",
		"error", errors.Join(p, missed), "stack", string(p.Stack))
}

// checkInstances says where the first plan leaves the bounds that apps set for the number of their instances.
func (s *Server) checkInstances(p *host.Planned) {
	spec := p.Spec()
	for _, x := range p.FirstPlan().OutOfBounds(spec) {
		st := &spec.Stages[x.Stage]
		s.log.Warn("the plan does not keep "+x.Setting()+": the system's planner does not read it, or memory is short",
			"app", spec.Apps[st.App].Name, "stage", st.Name, "instances", x.Instances, "want", x.Bound)
	}
}

// refinement returns what is to be measured next while the server is idle: models of the configuration, then functions.
func (s *Server) refinement() func(context.Context) {
	do := s.refiner.next()
	if f := s.functions; do == nil && f != nil && f.refines {
		do = f.manager.Refinement()
	}
	return do
}

// openCatalog has the models of the repository come and go, as clients or the repository say.
func (s *Server) openCatalog(run *machines.Backends) error {
	h := s.functions
	if h == nil {
		var err error
		if h, err = s.newFunctionHost(context.Background(), s.planned.Profiled, nil, run); err != nil {
			return err
		}
		h.begin(s.service)
	}
	m := h.manager
	s.objectives.service, s.objectives.manager, s.service.objectives = s.service, m, s.objectives
	s.refiner.service, s.refiner.manager, s.refiner.backends = s.service, m, run
	s.service.refiner = s.refiner
	s.service.catalog = newCatalog(s.planned.Profiled, run, s.service, m, s.refiner, s.log)
	if s.service.catalog != nil {
		s.onRelease(s.service.catalog.close)
	}
	if s.functions != nil && run.Local != nil {
		s.service.chains = newChains(&catalog{
			base: s.planned.Profiled, run: run, service: s.service, manager: m, refiner: s.refiner, log: s.log,
		}, s.functions.kept)
		m.SetChains(s.service.chains)
	}
	return nil
}

// watch returns the observer of every step: metrics, then events of functions, then the journal.
func (s *Server) watch(o Options) (_ host.Observer, err error) {
	p := s.planned
	t := &p.File().Telemetry
	var buckets []float64
	for _, b := range t.LatencyBuckets {
		buckets = append(buckets, time.Duration(b).Seconds())
	}
	options := telemetry.Options{
		LatencyBuckets: buckets, PromiseChanged: s.logPromiseChange, Apps: t.MetricsApps,
		AppsFull: func(app string) {
			s.log.Warn("this app and further ones have no series of their own: they are counted together as "+
				telemetry.Other, "app", app, "telemetry.metrics_apps", t.MetricsApps)
		},
	}
	if s.tracer != nil {
		options.TraceID = s.tracer.TraceID
	}
	s.steps = steps.New(p.Spec(), steps.Options{Decisions: t.Decisions})
	s.telemetry = telemetry.New(p.Spec(), s.steps, options)
	showAccuracies(p.Profiled, s.telemetry)
	s.startBoard()
	watching := []host.Observer{s.steps.Observe}
	if s.functions != nil {
		watching = append(watching, s.functions.manager.Observe)
	}
	path := t.Journal
	if o.Journal != "" {
		path = o.Journal
	}
	if o.Observe != nil {
		watching = append(watching, o.Observe)
	}
	if path != "" {
		if err := host.RotateJournal(p.File().Path(path)); err != nil {
			return nil, err
		}
		// Clients' data: for its owner alone.
		counts := &host.JournalCounts{}
		s.telemetry.CountJournal(func() (written, missed uint64) { return counts.Written.Load(), counts.Missed.Load() })
		s.journal, err = p.OpenJournal(p.File().Path(path), 0o600, int64(t.JournalLimit), counts, func(err error) {
			s.log.Error("the journal ends here: no further step is recorded", "error", err)
		})
		if err != nil {
			return nil, err
		}
		s.onRelease(s.journal.Close)
		watching = append(watching, s.journal.Record)
	}
	return func(now serving.Time, in []engine.Input, out []engine.Decision) {
		for _, see := range watching {
			see(now, in, out)
		}
	}, nil
}

// logPromiseChange logs that accuracy or violations are worse than policies promise, or no longer are.
func (s *Server) logPromiseChange(d telemetry.PromiseChange) {
	app := s.service.spec.Load().Apps[d.App].Name // functions may have been added
	if !d.Broken {
		s.log.Info("policies keep their promise again", "app", app, "promise", d.What)
		return
	}
	s.log.Warn("reality leaves what policies promise: is the profile still true of these machines?",
		"app", app, "promise", d.What, "promised", d.Promised, "observed", d.Observed, "queries", d.Queries)
}

// openStates opens the store of streams' states. It returns nil if no stage is stateful or the file names no folder.
func (s *Server) openStates() (dataplane.StateStore, error) {
	p := s.planned
	folder := p.File().Server.States
	if folder == "" || !slices.ContainsFunc(p.Spec().Stages, func(st serving.Stage) bool { return st.Stateful }) {
		return nil, nil
	}
	states, err := store.OpenStates(p.File().Path(folder), int64(p.File().Server.Limits.AllStates))
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	s.onRelease(states.Close)
	if lost := states.Lost(); lost != "" {
		s.log.Error("the states of streams were damaged: streams begin anew", "lost", lost)
	}
	return states, nil
}
