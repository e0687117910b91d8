package measuring

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/server"
	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// settings of the measurement of overheads
const (
	overheadLoad    = 0.5             // of the machine, as the profiler's pauses leave it
	overheadQueries = 400             // at most
	overheadTime    = 4 * time.Second // of arrivals, at most
	overheadLeast   = 20              // queries; from fewer nothing is said
	overheadSeed    = 1
	overheadTimeout = 30 * time.Second // of the start of the server, and of all queries
	// overheadAtOnce is how many queries are under way at most. Each takes two of the file descriptors of this process.
	overheadAtOnce = 8
)

// measureOverhead serves the configuration over HTTP in this process, sends queries to its apps of one stage that keep
// the machine half busy, and measures what goes by around the runs of batches and around the answers. f is the profile.
// It returns nothing for configurations with workers elsewhere, several device types, a store or TLS, and where no app
// has one stage.
func measureOverhead(ctx context.Context, o *host.Opened, f *profiler.File) ([]profiler.Overhead, error) {
	for w := range o.Tables().Backends {
		if !o.Fleet().RunsHere(serving.WorkerID(w)) ||
			o.Spec().Workers[w].DeviceType != o.Spec().Workers[0].DeviceType {
			return nil, nil
		}
	}
	if len(o.Tables().Backends) == 0 || o.File().Store != "" || o.File().Server.TLS.Cert != "" {
		return nil, nil
	}
	file := *o.File()
	file.Telemetry.Journal, file.Server.States, file.Server.NotReady = "", "", 0
	system, err := systems.Get(systems.Default)
	if err != nil {
		return nil, err
	}
	p, err := o.WithFile(&file, o.Tables()).Under(system).Lenient().ProfileOf(f)
	if err == nil {
		p, err = p.Assumed(f)
	}
	if err != nil {
		return nil, err
	}
	p = unhurried(p)
	watch := &overheadWatch{started: make(map[serving.BatchID]serving.Time)}
	s, err := server.New(ctx, p, server.Options{HTTP: "127.0.0.1:0", GRPC: "off", Admin: "off",
		Observe: watch.observe})
	if err != nil {
		return nil, err
	}
	serve, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(serve) }()
	outside, err := sendForOverhead(ctx, p, s)
	stop()
	if err = errors.Join(err, <-ended); err != nil || len(outside) < overheadLeast {
		return nil, err
	}
	out := profiler.Overhead{
		DeviceType: o.Spec().DeviceTypes[o.Spec().Workers[0].DeviceType].Name, Queries: len(outside),
		Batch: watch.perBatch(), Query: max(0, micros(server.Median(outside))),
	}
	return []profiler.Overhead{out}, nil
}

// unhurried returns a copy whose objectives leave time for every model: models that are too slow for theirs cost as
// much around them.
func unhurried(p *host.Profiled) *host.Profiled {
	spec := *p.Spec()
	spec.Apps = slices.Clone(spec.Apps)
	for a := range spec.Apps {
		slo := &spec.Apps[a].SLO
		slo.Latency = max(slo.Latency, profile.Objective(&spec, p.Latencies(), serving.AppID(a), 1))
	}
	return p.With(func(t *config.Resolved) { t.Spec = &spec })
}

// sendForOverhead sends queries to a server and returns what their clients waited beside the time in which they were
// queued or ran.
func sendForOverhead(ctx context.Context, p *host.Profiled, s *server.Server) ([]time.Duration, error) {
	starting, done := context.WithTimeout(ctx, overheadTimeout)
	defer done()
	if err := s.WaitReady(starting); err != nil {
		return nil, err
	}
	target, err := loadgen.DialHTTP("http://"+s.HTTPAddr(), 0, nil)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	var models []string
	var samples []*loadgen.Samples
	var busy time.Duration // of one query to each
	var failed error
	for a := range p.Spec().Apps {
		app := &p.Spec().Apps[a]
		stage := &p.Spec().Stages[app.Stages[0]]
		if len(app.Stages) > 1 || stage.Stateful {
			continue
		}
		specs, err := target.Inputs(ctx, app.Name)
		if err != nil { // a model that cannot be called: the others tell enough
			failed = err
			continue
		}
		made, err := loadgen.Synthetic(specs, 8, overheadSeed)
		if err != nil {
			return nil, fmt.Errorf("app %q: %w", app.Name, err)
		}
		best := slices.MaxFunc(stage.Variants, func(a, b serving.VariantID) int {
			return int(p.Latencies().Latency(a, p.Spec().Workers[0].DeviceType, 1, 1) -
				p.Latencies().Latency(b, p.Spec().Workers[0].DeviceType, 1, 1))
		})
		models, samples = append(models, app.Name), append(samples, made)
		busy += p.Latencies().Latency(best, p.Spec().Workers[0].DeviceType, 1, 1)
	}
	if len(models) == 0 {
		return nil, failed
	}
	gap := float64(busy) / float64(len(models)) / overheadLoad
	return sendOpenLoop(ctx, target, models, samples, gap)
}

// sendOpenLoop sends queries to the models in turn, with exponential gaps of so many nanoseconds on average, longer
// ones while overheadAtOnce are under way. Queries that fail are left out. An error says that answers do not come, or
// that this process may open no more files.
func sendOpenLoop(ctx context.Context, target loadgen.Target, models []string, samples []*loadgen.Samples,
	gap float64) (out []time.Duration, err error) {
	ctx, done := context.WithTimeoutCause(ctx, overheadTimeout,
		fmt.Errorf("queries were not answered within %v", overheadTimeout))
	defer done()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	rng := rand.New(rand.NewPCG(overheadSeed, 0x6f766572))
	var all sync.WaitGroup
	var mu sync.Mutex
	free := make(chan struct{}, overheadAtOnce)
	begun := time.Now()
	due := begun
	for n := 0; n < overheadQueries && due.Sub(begun) < overheadTime && ctx.Err() == nil; n++ {
		due = due.Add(time.Duration(rng.ExpFloat64() * gap))
		time.Sleep(time.Until(due))
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			k := n % len(models)
			sent := time.Now()
			answer, err := target.Infer(ctx, &loadgen.Request{
				Model: models[k], Inputs: samples[k].Tensors(n, 1), Timeout: overheadTimeout, StageTimings: true,
			})
			took := time.Since(sent)
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				end(err)
			}
			if err != nil || len(answer.Stages) != 1 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, took-answer.Stages[0].Queue-answer.Stages[0].Run)
		})
	}
	all.Wait()
	return out, context.Cause(ctx)
}

// overheadWatch notes what goes by around the runs of batches.
type overheadWatch struct {
	mu      sync.Mutex
	started map[serving.BatchID]serving.Time
	around  []time.Duration
}

// observe notes the batches that begin and end in a step.
func (w *overheadWatch) observe(now serving.Time, in []engine.Input, out []engine.Decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range in {
		x := &in[k]
		if begun, ours := w.started[x.Batch]; ours && x.Kind == engine.BatchDone {
			delete(w.started, x.Batch)
			w.around = append(w.around, now.Sub(begun)-x.Took)
		}
	}
	for k := range out {
		if d := &out[k]; d.Kind == engine.StartBatch {
			w.started[d.Batch] = now
		}
	}
}

// perBatch is the median, in microseconds.
func (w *overheadWatch) perBatch() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, micros(server.Median(w.around)))
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
