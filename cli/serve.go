package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/api/server"
	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/engine/journal"
	"github.com/sluice-serving/sluice/host/functions"
	"github.com/sluice-serving/sluice/host/store"
	"github.com/sluice-serving/sluice/measure/telemetry"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

func serveCommand() command {
	return command{
		name: "serve", summary: "serve the apps of a sluice.yaml over the Open Inference Protocol",
		usage: "-f sluice.yaml",
		about: `
Loads the models, answers queries over HTTP and gRPC and chooses batches so that the latency objectives hold.
Metrics are at /metrics of the HTTP port, decisions at /debug/decisions of the admin port. On SIGTERM the server
turns not ready, finishes what it has accepted, and exits. Without a profile it measures the models first and
keeps what it measured; a system that learns latency while it serves (option learn) begins without.`,
		examples: "sluice serve -f sluice.yaml\nsluice serve -f sluice.yaml --http 127.0.0.1:9000 --grpc off\ncurl " +
			"localhost:8000/v2/health/ready",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			file := fs.String("f", "sluice.yaml", "configuration `file`")
			profiles := fs.String("profile", "", "profile `file` instead of those of the configuration")
			system := fs.String("system", "", "`name` of another system than the configuration's, or ROUTER+BATCHER")
			httpAt := fs.String("http", "", "HTTP `address`, or off; instead of the configuration's")
			grpcAt := fs.String("grpc", "", "gRPC `address`, or off; instead of the configuration's")
			adminAt := fs.String("admin", "", "admin `address`, or off; instead of the configuration's")
			journalTo := fs.String("journal", "", "write all inputs and decisions to this `file`")
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return exit(ExitUsage, "%q is not understood", args)
				}
				w, err := openWorld(e, *file)
				if err != nil {
					return err
				}
				if *system != "" {
					if err := w.useSystem(*system); err != nil {
						return err
					}
				}
				s := &w.file.Server
				for _, x := range []struct {
					from, to *string
				}{{httpAt, &s.HTTP}, {grpcAt, &s.GRPC}, {adminAt, &s.Admin}, {journalTo, &w.file.Telemetry.Journal}} {
					if *x.from != "" {
						*x.to = *x.from
					}
				}
				if err := w.knowledge(e, *profiles); err != nil {
					return err
				}
				run, err := startServer(e, w)
				if err != nil {
					return err
				}
				return run.wait(e.Context)
			}
		},
	}
}

// knowledge gets a profile: the one given, those of the configuration, one measured at an earlier start, or a new one.
func (w *world) knowledge(e *Env, given string) error {
	w.starts = true
	w.unplanned = w.file.Store != "" // until the functions in it are known
	if len(w.Spec.Apps) == 0 {
		return w.adopt(serving.Measurements{})
	}
	if given != "" {
		return w.believe([]string{given})
	}
	remembered := w.file.Path("sluice.profile.json")
	err := w.believe(nil)
	var s *status
	if err == nil || len(w.Profiles) > 0 || !errors.As(err, &s) {
		return err
	}
	if _, statErr := os.Stat(remembered); statErr == nil {
		if w.believe([]string{remembered}) == nil && w.partsKnown() {
			return nil
		}
	}
	if w.system.Options.Learn && w.file.Store == "" {
		w.unmeasured = true
		return w.adopt(serving.Measurements{})
	}
	fmt.Fprintf(e.Stderr, "measuring the models on this machine; the profile is kept in %s\n", remembered)
	f, err := w.measure(e, remembered, nil)
	if err != nil {
		return err
	}
	return w.learn(f)
}

// running is a server and what is behind it.
type running struct {
	world  *world
	plane  *dataplane.Plane
	server *server.Server
	told   *telemetry.Telemetry
	log    *slog.Logger
	drain  time.Duration
	finish func() error // closes the journal
	host   *functionHost
}

// policyPatience bounds the making of policies in a running server: after the loss of a worker a whole set is made, and
// the policies in force serve meanwhile.
const policyPatience = 5 * time.Minute

// startServer brings everything up and binds the addresses.
func startServer(e *Env, w *world) (_ *running, err error) {
	r := &running{world: w, log: logger(e, w), drain: time.Duration(w.file.Server.DrainTimeout), finish: func() error {
		return nil
	}}
	for _, x := range w.Warnings {
		r.log.Warn(x)
	}
	w.making.tell(func(rate float64) {
		r.log.Info("a policy was made", "rate", rate)
		if err := w.making.trouble(); err != nil {
			r.log.Warn("policies are not kept", "error", err)
		}
	})
	runtimes, err := w.backends()
	if err != nil {
		return nil, err
	}
	host := &functionHost{world: w, local: runtimes.local, log: r.log}
	closeStore, err := r.functions(e, host, runtimes)
	if err != nil {
		return nil, err
	}
	r.finish = closeStore
	defer func() {
		if err != nil && r.plane == nil {
			err = errors.Join(err, r.finish())
		}
	}()
	en, err := w.engine()
	if err != nil {
		return nil, &status{ExitConfig, err}
	}
	var buckets []float64
	for _, b := range w.file.Telemetry.LatencyBuckets {
		buckets = append(buckets, time.Duration(b).Seconds())
	}
	r.told = telemetry.New(w.Spec, telemetry.Options{
		Decisions: w.file.Telemetry.Decisions, LatencyBuckets: buckets, PromiseChanged: r.departed,
	})
	observe := r.told.Observe
	if w.functions != nil {
		observe = func(now serving.Time, in []engine.Input, out []engine.Decision) {
			r.told.Observe(now, in, out)
			w.functions.Observe(now, in, out)
		}
	}
	if path := w.file.Telemetry.Journal; path != "" {
		if observe, err = r.record(w.file.Path(path), observe); err != nil {
			return nil, err
		}
	}
	wiring := w.wiring(runtimes, r.log)
	platform, err := newPlatform(w, r.told, runtimes, wiring)
	if err != nil {
		return nil, err
	}
	states, err := r.states()
	if err != nil {
		return nil, err
	}
	limits := &w.file.Server.Limits
	patience := time.Duration(0)
	if w.planner.Provides()&plan.Tables != 0 {
		patience = policyPatience
	}
	r.plane, err = dataplane.New(dataplane.Config{
		PlanTimeout: patience,
		Spec:        w.Spec, Engine: en, Backend: runtimes.of, Initial: w.plan, Recalled: host.recall(w.Spec),
		Planner: withholding{w.planner, platform}, Outcome: r.told.Outcome, Observe: observe,
		Trouble: func(err error) { r.log.Error("trouble", "error", err) },
		Wiring:  wiring, Rows: limits.Rows, State: int(limits.State), StatesHeld: int64(limits.AllStates),
		States: states,
	})
	if err != nil {
		return nil, err
	}
	platform.plane = r.plane
	host.begin(platform)
	r.host = host
	c, err := w.serverConfig(r.log)
	token := ""
	if path := w.file.Server.AdminToken; err == nil && path != "" && w.file.Server.Admin != "off" {
		token, err = server.Token(w.file.Path(path))
	}
	if err == nil {
		c.AdminHandlers = map[string]http.Handler{"/metrics": r.told.Metrics(), "/debug/decisions": r.told.Decisions(),
			"/debug/explain": r.told.Explanations(),
			"/prices":        server.Guard(token, true, server.Prices(platform.prices, platform.setPrice))}
		if w.functions != nil {
			c.AdminHandlers["/v1/"] = server.Guard(token, false,
				functions.Handler(w.functions, int64(w.file.Server.Limits.Model)))
		}
		r.server, err = server.New(c, platform)
	}
	if err != nil {
		r.plane.Close()
		return nil, errors.Join(err, r.finish())
	}
	r.log.Info("serving", "http", r.server.HTTPAddr(), "grpc", r.server.GRPCAddr(), "admin", r.server.AdminAddr(),
		"system", w.system.Name, "router", w.system.Router, "batcher", w.system.Batcher)
	return r, nil
}

// states opens the states of streams, if any stage is to keep some and the file says where; else nil.
func (r *running) states() (dataplane.StateStore, error) {
	w := r.world
	folder := w.file.Server.States
	if folder == "" || !slices.ContainsFunc(w.Spec.Stages, func(s serving.Stage) bool { return s.Stateful }) {
		return nil, nil
	}
	s, err := store.OpenStates(w.file.Path(folder), int64(w.file.Server.Limits.AllStates))
	if err != nil {
		return nil, &status{ExitConfig, err}
	}
	before := r.finish
	r.finish = func() error { return errors.Join(s.Close(), before()) }
	return s, nil
}

// departed logs that reality has left what policies promise, or is back.
func (r *running) departed(d telemetry.PromiseChange) {
	app := r.world.Spec.Apps[d.App].Name
	if !d.Broken {
		r.log.Info("policies keep their promise again", "app", app, "promise", d.What)
		return
	}
	r.log.Warn("reality leaves what policies promise: is the profile still true of these machines?",
		"app", app, "promise", d.What, "promised", d.Promised, "observed", d.Observed, "queries", d.Queries)
}

// record adds a journal to what observes the steps.
func (r *running) record(path string, next func(serving.Time, []engine.Input, []engine.Decision)) (func(serving.Time,
	[]engine.Input, []engine.Decision), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) // inputs of clients: for the owner's eyes
	if err != nil {
		return nil, err
	}
	j, err := journal.NewWriter(f, r.world.journalHeader())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	before := r.finish
	r.finish = func() error { return errors.Join(j.Flush(), f.Close(), before()) }
	return func(now serving.Time, in []engine.Input, out []engine.Decision) {
		next(now, in, out)
		_ = j.Step(now, in, out) // the error sticks and is reported by finish
	}, nil
}

// wait serves until ctx ends, then answers what was accepted and releases everything.
func (r *running) wait(ctx context.Context) error {
	var helpers sync.WaitGroup
	over := make(chan struct{})
	if r.host.idle != nil {
		helpers.Go(func() { r.host.remember(over) })
	}
	refining, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if r.world.functions != nil && r.host.measure {
		helpers.Go(func() { r.world.functions.Refine(refining, r.host.quiet) })
	}
	err := r.server.Serve(ctx)
	limit, done := context.WithTimeout(context.WithoutCancel(ctx), max(r.drain, time.Second))
	defer done()
	if drained := r.plane.Drain(limit); drained != nil {
		err = errors.Join(err, fmt.Errorf("queries were still running after %v: %w", r.drain, drained))
	}
	stop()
	close(over)
	helpers.Wait()
	if r.host.idle != nil {
		r.host.save()
	}
	r.plane.Close()
	r.log.Info("stopped")
	return errors.Join(err, r.finish())
}

func logger(e *Env, w *world) *slog.Logger {
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(w.file.Telemetry.LogLevel)) // checked with the file
	o := &slog.HandlerOptions{Level: level}
	if w.file.Telemetry.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(e.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(e.Stderr, o))
}

// serverConfig turns the file's words into the front end's.
func (w *world) serverConfig(log *slog.Logger) (server.Config, error) {
	s := &w.file.Server
	c := server.Config{
		HTTP: s.HTTP, GRPC: s.GRPC, Admin: s.Admin, MaxRequest: int64(s.Limits.Request),
		MaxHeader: int(s.Limits.Header), Connections: s.Limits.Connections,
		Items: s.Limits.Items, ReadTimeout: time.Duration(s.Limits.ReadTimeout),
		IdleTimeout:  time.Duration(s.Limits.IdleTimeout),
		DrainTimeout: time.Duration(s.DrainTimeout), Log: log,
	}
	if s.TLS.Cert == "" {
		return c, nil
	}
	pair, err := tls.LoadX509KeyPair(w.file.Path(s.TLS.Cert), w.file.Path(s.TLS.Key))
	if err != nil {
		return c, exit(ExitConfig, "server.tls: %v", err)
	}
	c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if s.TLS.ClientCA != "" {
		pem, err := readBounded(w.file.Path(s.TLS.ClientCA), 1<<20)
		if err != nil {
			return c, err
		}
		c.TLS.ClientCAs, c.TLS.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !c.TLS.ClientCAs.AppendCertsFromPEM(pem) {
			return c, exit(ExitConfig, "server.tls.client_ca: %s holds no certificate", s.TLS.ClientCA)
		}
	}
	return c, nil
}
