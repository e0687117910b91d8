// Package demo holds the demonstrations: their loads and the check of their answers. They use package host like any
// other program. They write the models that the program carries, measure them, serve them under a load, and repeat the
// run in the simulator.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/files"
	"github.com/sluice-serving/sluice/internal/host/load"
	"github.com/sluice-serving/sluice/internal/host/measuring"
	"github.com/sluice-serving/sluice/internal/host/server"
	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/models/digits"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Seed is the default seed of the load.
const Seed = 1

const (
	// planDelay is the simulated time of planning for one app on a few workers.
	planDelay = 20 * time.Millisecond
	// maxRate bounds the load in queries/s. Beyond it the load generator and the server would fill their core, and the
	// demo would measure them instead of the models.
	maxRate = 600
	// connections of the load generator.
	connections = 2
)

// Setting is the part that both demonstrations share.
type Setting struct {
	Dir       string        // for models, samples, configuration, profile and the record of the run
	Length    time.Duration // of the load
	Seed      uint64        // of the load
	Objective time.Duration // in which a query is to be answered
	// Started is called when the server listens; nil for nobody.
	Started func(*server.Server)
}

// serverSettings end every configuration. Nobody waits for the server to say that it goes.
const serverSettings = `server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "127.0.0.1:0", admin: "127.0.0.1:0"}
telemetry: {log_level: warn}
`

func (s *Setting) path(name string) string { return filepath.Join(s.Dir, name) }

// Configuration is the path of the sluice.yaml.
func (s *Setting) Configuration() string { return s.path("sluice.yaml") }

// ProfilePath is the path of the latency profile.
func (s *Setting) ProfilePath() string { return s.path("profile.json") }

// Record is the path of the record of the run, which has every query.
func (s *Setting) Record() string { return s.path("run.jsonl") }

// Models is the folder of the models.
func (s *Setting) Models() string { return s.path("models") }

func (s *Setting) samples() string { return s.path("samples") }

// configure writes the configuration and opens it.
func (s *Setting) configure(o host.Options, write func(io.Writer) error) (*host.Opened, error) {
	if err := files.Write(s.Configuration(), write); err != nil {
		return nil, err
	}
	return host.Open(s.Configuration(), o)
}

// write writes the models that the program carries, and returns what is known of them.
func (s *Setting) write(folder string) (*digits.Ladder, error) {
	l, err := digits.Trained(folder)
	if err == nil {
		err = l.Write(s.Models())
	}
	return l, err
}

// Measured returns the profile of an earlier run; ok is false unless it was measured on this machine and is no older
// than the models.
func (s *Setting) Measured(o *host.Opened) (*host.Profiled, bool) {
	f, err := profiler.ReadFile(s.ProfilePath())
	if err != nil || !measuring.MeasuredHere(o, f) {
		return nil, false
	}
	measured, err := os.Stat(s.ProfilePath())
	if err != nil {
		return nil, false
	}
	for v := range o.Tables().Variants {
		made, err := os.Stat(o.Tables().Variants[v].Path)
		if o.Tables().Variants[v].Function == nil && (err != nil || measured.ModTime().Before(made.ModTime())) {
			return nil, false
		}
	}
	p, err := o.ProfileOf(f)
	return p, err == nil
}

// measureShare of the length of the load, and at most longestMeasuring, is for the runs of models that are measured.
// Loading them, and what serving costs around them, takes a few seconds more.
const (
	measureShare     = 0.3
	longestMeasuring = 12 * time.Second
)

// MeasureTime bounds the runs of models that are measured.
func (s *Setting) MeasureTime() time.Duration {
	return min(time.Duration(measureShare*float64(s.Length)), longestMeasuring)
}

// Measure measures every variant. Batches that take more than half of the objective are of no use: a query waits for
// another batch first.
func (s *Setting) Measure(ctx context.Context, o *host.Opened) (*host.Profiled, error) {
	f, err := measuring.Measure(ctx, o, measuring.Measuring{File: s.ProfilePath(), Tune: func(c *profiler.Config) {
		c.Within, c.LoadedVariants = s.MeasureTime(), len(c.Spec.Variants)
		c.Bound = func(serving.VariantID) time.Duration { return s.Objective / 2 }
	}})
	if err != nil {
		return nil, err
	}
	return o.ProfileOf(f)
}

// Drive starts a server, sends the load to it over gRPC as soon as it is ready, and stops it. prepare may change the
// loader; done is called while the server still runs. Every query is written to Record.
func (s *Setting) Drive(ctx context.Context, p *host.Planned, o server.Options, spec *workload.Spec,
	prepare func(*load.Loader), done func(*server.Server)) (_ *loadgen.Result, err error) {
	server, err := server.NewPlanned(ctx, p, o)
	if err != nil {
		return nil, err
	}
	if s.Started != nil {
		s.Started(server)
	}
	serving, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(serving) }()
	defer func() {
		stop()
		err = errors.Join(err, <-stopped)
	}()
	r, err := s.send(ctx, p, server, spec, prepare)
	if err != nil {
		return nil, err
	}
	done(server)
	return r, files.Write(s.Record(), r.WriteRecords)
}

// send sends the load to a server.
func (s *Setting) send(ctx context.Context, p *host.Planned, server *server.Server, spec *workload.Spec,
	prepare func(*load.Loader)) (*loadgen.Result, error) {
	address := "grpc://" + server.GRPCAddr()
	client, err := loadgen.Dial(address, connections)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	l := load.For(p.Opened)
	l.Client, l.Options.Name, l.Options.Seed, l.Options.StageTimings = client, "live", s.Seed, true
	if err := l.Samples(ctx, address, s.samples(), s.Seed); err != nil {
		return nil, err
	}
	prepare(l)
	if err := server.WaitReady(ctx); err != nil {
		return nil, err
	}
	progress := p.Options().Progress
	r, err := l.Send(ctx, spec, func(x loadgen.Progress) {
		progress(float64(x.Sent)/float64(max(x.Total, 1)),
			fmt.Sprintf("%d sent, %d under way", x.Sent, x.Outstanding))
	})
	if err == nil && r.Interrupted {
		err = errors.New("interrupted")
	}
	return r, err
}

// Predict simulates the arrivals of the recorded run.
func (s *Setting) Predict(p *host.Planned) (*report.Report, error) {
	run, err := p.ReadRun(s.Record())
	if err != nil {
		return nil, err
	}
	return p.SimulateRun(host.Simulation{Seed: s.Seed, PlanDelay: planDelay}, run)
}
