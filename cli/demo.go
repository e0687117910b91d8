package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/measure/loadgen"
	"github.com/sluice-serving/sluice/measure/profiler"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/models/digits"
	"github.com/sluice-serving/sluice/runtime/onnx"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/systems"
)

// What the demo asks for. Every number can be changed in the sluice.yaml that it leaves behind.
const (
	demoSLO  = 100 * time.Millisecond
	demoSeed = 1
	// demoPlanDelay is what planning for one app on a few workers takes, for the simulator.
	demoPlanDelay = 20 * time.Millisecond
	demoSamples   = 1000
)

func demoCommand() command {
	return command{
		name: "demo", summary: "train small models, serve them under a bursty load, and predict what was seen",
		usage: "[pipeline] [--dir out/demo]",
		about: `
Without an argument: trains a ladder of classifiers that find and read a digit in a picture (once, about two
minutes), measures them, serves them over gRPC, and drives the server for a minute with a load that rises and
falls to several times what the most accurate model alone can carry. System proteus answers with less accurate
models while it must: they are loaded and unloaded as the load goes. Then the simulator repeats the same
arrivals with the same scheduling code, and with the most accurate model alone. Everything is left in --dir to
look at and to repeat.

pipeline: the same with a graph of models under one objective. A detector finds the digits of a scene, each is
cut out, and a reader reads it; the scenes grow three times as busy while it runs. System scrooge gives the
stages batches, places and parts of the objective so that they cost least, and follows what is in the scenes.`,
		examples: "sluice demo\nsluice demo pipeline\nsluice demo --dir /tmp/demo --duration 2m\nsluice simulate -f " +
			"out/demo/sluice.yaml --replay out/demo/run.jsonl",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			dir := fs.String("dir", "",
				"`folder` for models, profile, reports and plots; empty takes out/demo, or out/pipeline")
			length := fs.Duration("duration", time.Minute, "length of the load, a `duration`")
			seed := fs.Uint64("seed", demoSeed, "`seed` of the load")
			again := fs.Bool("remeasure", false, "measure the models again even if a profile of this machine is there")
			asJSON := fs.Bool("json", false, "print the outcome as JSON")
			return func(e *Env, args []string) error {
				d := &demo{
					dir: *dir, length: *length, seed: *seed, slo: demoSLO, again: *again, asJSON: *asJSON,
					say: e.Stdout,
				}
				if *asJSON {
					d.say = e.Stderr
				}
				run, name := d.run, "demo"
				switch {
				case len(args) == 1 && args[0] == "pipeline":
					d.slo = sceneSLO
					run, name = (&sceneDemo{demo: d}).run, "pipeline"
				case len(args) > 0:
					return exit(ExitUsage, "%q is not understood: give no argument, or pipeline", args)
				}
				if d.dir == "" {
					d.dir = filepath.Join("out", name)
				}
				if err := os.MkdirAll(d.dir, 0o755); err != nil {
					return err
				}
				return run(e)
			}
		},
	}
}

type demo struct {
	dir    string
	length time.Duration
	seed   uint64
	slo    time.Duration
	again  bool
	asJSON bool
	say    io.Writer
}

func (d *demo) path(name string) string { return filepath.Join(d.dir, name) }

func (d *demo) run(e *Env) error {
	w, err := d.world(e)
	if err != nil {
		return err
	}
	if err := d.profile(e, w); err != nil {
		return err
	}
	d.ladder(w)
	spec := d.load(w)
	run, err := startServer(e, w)
	if err != nil {
		return err
	}
	result, err := d.drive(e, w, run, &spec, func(*loader) {}, func() {})
	if err != nil {
		return err
	}
	return d.tell(e, w, result)
}

// world makes the models and the configuration, where they are not there yet.
func (d *demo) world(e *Env) (*world, error) {
	models := d.path("models")
	fmt.Fprintf(d.say, "1. models: a ladder of digit classifiers in %s\n", models)
	bar := newProgress(e)
	ladder, err := digits.Build(e.Context, models, demoSeed, func(stage string, done, total float64) {
		bar.show(done/math.Max(total, 1e-9), stage)
	})
	bar.done()
	if err != nil {
		return nil, err
	}
	if err := digits.WriteSamples(d.path("samples"), ladder.HeldOut.Seed, demoSamples); err != nil {
		return nil, err
	}
	file := d.path("sluice.yaml")
	if err := create(file, func(w io.Writer) error { return demoConfig(w, ladder) }); err != nil {
		return nil, err
	}
	return openWorld(e, file)
}

// demoConfig writes the demo's sluice.yaml: a worker a core, each with the variant that the plan gives it, and one core
// left to the front end and the load generator.
func demoConfig(w io.Writer, l *digits.Ladder) error {
	var b strings.Builder
	instances := max(1, runtime.NumCPU()-1)
	fmt.Fprintf(&b,
		`# Written by 'sluice demo'. Try another system:
#   sluice simulate -f sluice.yaml --replay run.jsonl --system clipper
version: 1
device_types: [{name: core, price_per_hour: 0.04, cores: 1}]
workers: [{name: core, count: %d}]
models: {repository: models}
profiles: [profile.json]
# Batches wait for as long as their first query can; the slack is for the way to it and back.
system: {name: proteus, replan: 2s, slack: 15ms}
apps:
  - name: digits
    slo: {latency: %v, percentile: 99}
    queue_limit: 2000
    variants:
`, instances, demoSLO)
	for _, v := range slices.Backward(l.Variants) {
		fmt.Fprintf(&b, "      - {name: %s, accuracy: %.4f, max_batch: 64}\n", v.Name, v.Accuracy)
	}
	b.WriteString("server: {http: \"127.0.0.1:0\", grpc: \"127.0.0.1:0\", admin: \"127.0.0.1:0\"}\n")
	b.WriteString("telemetry: {log_level: warn}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// profile measures the models unless a profile of these models on this machine is there.
func (d *demo) profile(e *Env, w *world) error {
	path := d.path("profile.json")
	if f, err := profiler.ReadFile(path); err == nil && !d.again && d.current(w, f) && w.learn(f) == nil {
		fmt.Fprintf(d.say, "2. profile: %s was measured on this machine\n", path)
		return nil
	}
	fmt.Fprintf(d.say, "2. profile: measuring every variant at every batch size\n")
	f, err := w.measure(e, path, func(c *profiler.Config) {
		c.MaxTime = 2 * time.Second
		c.Bound = func(serving.VariantID) time.Duration { return d.slo }
	})
	if err != nil {
		return err
	}
	return w.learn(f)
}

// current tells whether a profile is of this machine and no older than the models.
func (d *demo) current(w *world, f *profiler.File) bool {
	b, err := w.backends()
	if err != nil || b.local == nil || f.Host != profiler.ThisHost(onnx.Version()) {
		return false
	}
	made, err1 := os.Stat(filepath.Join(d.path("models"), "ladder.json"))
	measured, err2 := os.Stat(d.path("profile.json"))
	return err1 == nil && err2 == nil && !measured.ModTime().Before(made.ModTime())
}

// ladder prints what each variant alone could carry.
func (d *demo) ladder(w *world) {
	fmt.Fprintf(d.say, "\n   %-10s %9s %12s %12s %14s\n", "variant", "accuracy", "1 image", "batch limit",
		"carries alone")
	for v, x := range w.Spec.Variants {
		limit, rate := d.capacity(w, serving.VariantID(v))
		fmt.Fprintf(d.say, "   %-10s %7.1f %% %12v %12d %12.0f/s\n", x.Name, 100*x.Accuracy,
			w.profile.Latency(serving.VariantID(v), 0, 1, 1).Round(time.Microsecond), limit, rate)
	}
	fmt.Fprintln(d.say)
}

// capacity is the batch limit of a variant and the rate it carries on all instances.
func (d *demo) capacity(w *world, v serving.VariantID) (limit int, rate float64) {
	limit = max(profile.BatchLimit(w.profile, w.Spec, v, 0, 1, demoSLO/2), 1)
	return limit, float64(len(w.Spec.Workers)) * float64(limit) / w.profile.Latency(v, 0, limit, 1).Seconds()
}

// demoCeiling bounds the load in queries/s: beyond it the load generator and the front end would fill the core that is
// left to them, and the demo would measure those.
const demoCeiling = 600

// load is two hills, each a little below what a step of the ladder carries: a gentle one to the second most accurate
// variant, a steep one to the third.
func (d *demo) load(w *world) workload.Spec {
	carried := func(step int) float64 {
		_, rate := d.capacity(w, serving.VariantID(min(step, len(w.Spec.Variants)-1)))
		return min(rate, demoCeiling)
	}
	calm, hill, peak := math.Round(0.5*carried(0)), math.Round(0.75*carried(1)), math.Round(0.75*carried(2))
	s := d.length.Seconds() / 60
	a := workload.AppSpec{App: w.Spec.Apps[0].Name, Process: "poisson", Interpolate: "linear", Samples: demoSamples}
	for _, at := range []struct {
		second, rate float64
	}{
		{0, calm}, {6, calm}, {14, hill}, {20, hill}, {26, calm}, {32, calm}, {36, peak}, {46, peak}, {52, calm},
		{60, calm},
	} {
		a.Rates = append(a.Rates, workload.Segment{AtS: at.second * s, Rate: at.rate})
	}
	fmt.Fprintf(d.say,
		"3. load: %.0f queries/s, rising to %.0f/s and then to %.0f/s within %v, Poisson arrivals, objective %v\n",
		calm, hill, peak, d.length, demoSLO)
	return workload.Spec{Seed: d.seed, DurationS: d.length.Seconds(), Apps: []workload.AppSpec{a}}
}

// drive sends the load to the running server and stops it. prepare may change how it is sent; done is called while the
// server still runs.
func (d *demo) drive(e *Env, w *world, run *running, spec *workload.Spec, prepare func(*loader),
	done func()) (_ *loadgen.Result, err error) {
	ctx, stop := context.WithCancel(e.Context)
	stopped := make(chan error, 1)
	go func() { stopped <- run.wait(ctx) }()
	defer func() {
		stop()
		err = errors.Join(err, <-stopped)
	}()
	l := loader{target: "grpc://" + run.server.GRPCAddr(), connections: 2, samples: d.path("samples"), seed: d.seed,
		world:   w,
		options: loadgen.Options{Name: "live", Seed: d.seed}}
	if err := l.apps(e, w.file.Name(), "", serving.SLO{}); err != nil {
		return nil, err
	}
	if err := l.dial(ctx); err != nil {
		return nil, err
	}
	defer l.client.Close()
	prepare(&l)
	if err := run.ready(ctx); err != nil {
		return nil, err
	}
	r, err := l.send(e, spec)
	if err != nil {
		return nil, err
	}
	if r.Interrupted {
		return nil, errors.New("interrupted")
	}
	done()
	return r, create(d.path("run.jsonl"), r.WriteRecords)
}

// ready waits until the server says so.
func (r *running) ready(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !r.server.Ready() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// tell simulates the recorded arrivals, with all variants and with the most accurate one alone, and prints everything.
func (d *demo) tell(e *Env, w *world, live *loadgen.Result) error {
	s := simulation{world: w, seed: d.seed, delay: demoPlanDelay}
	_, predicted, err := s.twin(d.path("run.jsonl"))
	if err != nil {
		return err
	}
	alone, err := d.alone(w)
	if err != nil {
		return err
	}
	names, reports := []string{"live", "simulated", "best-alone"}, []*report.Report{live.Report, predicted, alone}
	files, err := saveReports(d.dir, "sluice demo: live, simulated, and the most accurate variant alone (simulated)",
		names, reports)
	if err != nil {
		return err
	}
	if d.asJSON {
		return writeJSON(e.Stdout, map[string]any{
			"live": live, "simulated": predicted, "best_alone": alone, "differences": report.Compare(live.Report,
				predicted), "files": files,
		})
	}
	fmt.Fprintf(e.Stdout,
		"4. what was served, what the simulator predicts for the same arrivals, and what the most accurate variant "+
			"alone would\n   have done (simulated)\n\n")
	if err := report.SideBySide(e.Stdout, names, reports); err != nil {
		return err
	}
	printSending(e.Stdout, live)
	fmt.Fprintln(e.Stdout)
	for _, f := range append(files, d.path("run.jsonl")) {
		fmt.Fprintf(e.Stdout, "written: %s\n", f)
	}
	fmt.Fprintf(e.Stdout,
		"try: bin/sluice serve -f %[1]s   bin/sluice simulate -f %[1]s --replay %[2]s --system triton-like\n",
		d.path("sluice.yaml"), d.path("run.jsonl"))
	return nil
}

// alone simulates the recorded arrivals with nothing but the most accurate variant.
func (d *demo) alone(w *world) (*report.Report, error) {
	one := *w
	one.system.Planner, one.system.Scaler, one.system.Options.Planning = "static", "fixed", systems.Planning{}
	one.placement = slices.Clone(one.placement)
	for i := range one.placement {
		one.placement[i].Variants = one.placement[i].Variants[:1] // the file lists the most accurate first
	}
	if err := one.replan(); err != nil {
		return nil, err
	}
	s := simulation{world: &one, seed: d.seed, delay: demoPlanDelay}
	_, r, err := s.twin(d.path("run.jsonl"))
	if err != nil {
		return nil, err
	}
	r.Name = "best-alone"
	return r, nil
}
