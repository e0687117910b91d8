package cli

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/demo"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/load"
	"github.com/sluice-serving/sluice/internal/host/server"
	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

func demoCommand() command {
	return command{
		name: "demo", summary: "serve small models under a load that rises, and predict what was seen",
		usage: "[ladder | pipeline | --train] [--dir out/demo]",
		about: `
Without an argument: three apps share the machine. Two read the digit in a picture, one finds and reads all digits
in a picture with a graph of models. The program carries the trained models. They are measured, which takes
20 seconds the first time, and served over gRPC for 40 seconds in which the load of one app rises, pictures grow
busy, and the load of another rises. No system is named: the default decides which variants answer. Then the
simulator repeats the same queries with the same scheduling code, and with the best of the papers' systems for
them. Everything is left in --dir to look at and to repeat.

ladder: the same with the classifiers alone, whose load rises to several times what the most accurate model alone
can carry, beside that model alone.

pipeline: the same with a graph of models under one objective. A detector finds the digits of a scene, each is
cut out, and a reader reads it; the scenes grow three times as busy while it runs. System scrooge gives the
stages batches, places and parts of the objective so that they cost least, and follows what is in the scenes.

--train trains the models again, which takes minutes, and says whether they are those that the program carries.`,
		examples: "sluice demo\nsluice demo ladder\nsluice demo pipeline\nsluice demo --dir /tmp/demo --duration 2m\n" +
			"sluice simulate -f out/demo/sluice.yaml --replay out/demo/run.jsonl",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			var setting demo.Setting
			fs.StringVar(&setting.Dir, "dir", "",
				"`folder` for models, profile, reports and plots; empty takes out/demo, out/ladder, out/pipeline "+
					"or out/training")
			fs.DurationVar(&setting.Length, "duration", 40*time.Second, "length of the load, a `duration`")
			fs.Uint64Var(&setting.Seed, "seed", demo.Seed, "`seed` of the load")
			again := fs.Bool("remeasure", false, "measure the models again even if a profile of this machine is there")
			train := fs.Bool("train", false, "train the models that the program carries again")
			asJSON := fs.Bool("json", false, "print the outcome as JSON")
			return func(e *Env, args []string) error {
				s := &demoScreen{Env: e, words: e.Stdout, asJSON: *asJSON, remeasure: *again}
				if *asJSON {
					s.words = e.Stderr
				}
				run, name := sharedDemo, "demo"
				switch {
				case len(args) == 0 && *train:
					return trainDemo(s, setting.Dir)
				case *train:
					return fault.Errorf(fault.Usage, "--train stands alone, without %q", args)
				case setting.Length <= 0:
					return fault.Errorf(fault.Usage, "--duration %v is no time: give 5s or more", setting.Length)
				case len(args) == 1 && args[0] == "ladder":
					run, name = ladderDemo, "ladder"
				case len(args) == 1 && args[0] == "pipeline":
					run, name = scenesDemo, "pipeline"
				case len(args) > 0:
					return fault.Errorf(fault.Usage, "%q is not understood: give no argument, ladder or pipeline", args)
				}
				if setting.Dir == "" {
					setting.Dir = filepath.Join("out", name)
				}
				if err := os.MkdirAll(setting.Dir, 0o755); err != nil {
					return err
				}
				setting.Started = func(x *server.Server) {
					s.say("   look at it while it runs: http://%s/\n", x.AdminAddr())
				}
				return run(s, setting)
			}
		},
	}
}

// demoScreen prints a demonstration.
type demoScreen struct {
	*Env
	words     io.Writer // gets a line for every step
	asJSON    bool
	remeasure bool
	quiet     bool // notices are left out
}

func (s *demoScreen) say(format string, args ...any) {
	s.bar.clear()
	fmt.Fprintf(s.words, format, args...)
}

// options returns host options that draw progress and print notices on the terminal.
func (s *demoScreen) options() host.Options {
	o := terminalOptions(s.Env)
	notice := o.Notice
	o.Notice = func(sentence string) {
		if !s.quiet {
			notice(sentence)
		}
	}
	return o
}

// serverOptions returns options with which a server logs to Stderr.
func (s *demoScreen) serverOptions(o *host.Opened) server.Options {
	return server.Options{Log: logger(s.Env, &o.File().Telemetry, &slog.LevelVar{})}
}

// plan makes the models, knows or measures how fast they are, and plans.
func (s *demoScreen) plan(d *demo.Setting, build func(host.Options) (*host.Opened, error)) (
	o *host.Opened, profiled *host.Profiled, planned *host.Planned, err error) {
	s.say("1. models: small networks that the program carries, written to %s, and pictures to send them\n", d.Models())
	if o, err = build(s.options()); err != nil {
		return nil, nil, nil, err
	}
	if profiled, err = s.profile(d, o); err != nil {
		return nil, nil, nil, err
	}
	planned, err = profiled.Plan(s.Context)
	return o, profiled, planned, err
}

// profile measures the models unless there is a profile of these models on this machine.
func (s *demoScreen) profile(d *demo.Setting, o *host.Opened) (*host.Profiled, error) {
	if !s.remeasure {
		if p, ok := d.Measured(o); ok {
			s.say("2. profile: how fast they are is known from an earlier run, %s (--remeasure: again)\n",
				d.ProfilePath())
			return p, nil
		}
	}
	s.say("2. profile: measuring how fast they are on this machine, for %v and some to load them\n", d.MeasureTime())
	return d.Measure(s.Context, o)
}

// written lists the files of the demonstration and commands to try with them.
func (s *demoScreen) written(d *demo.Setting, names []string, another string) {
	for _, f := range append(names, d.Record()) {
		fmt.Fprintf(s.Stdout, "written: %s\n", f)
	}
	fmt.Fprintf(s.Stdout,
		"try: bin/sluice serve -f %[1]s   bin/sluice simulate -f %[1]s --replay %[2]s --system %[3]s\n",
		d.Configuration(), d.Record(), another)
}

// ladderDemo serves a ladder of classifiers.
func ladderDemo(s *demoScreen, setting demo.Setting) error {
	d := &demo.Ladder{Setting: setting}
	d.Objective = demo.LadderObjective
	opened, profiled, planned, err := s.plan(&d.Setting, d.Build)
	if err != nil {
		return err
	}
	s.ladder(d, profiled)
	spec, hills := d.Load(profiled)
	s.say("3. load: %.0f queries/s, rising to %.0f/s and then to %.0f/s within %v, Poisson arrivals, objective %v\n",
		hills.Quiet, hills.First, hills.Second, d.Length, d.Objective)
	live, err := d.Drive(s.Context, planned, s.serverOptions(opened), &spec, func(*load.Loader) {},
		func(*server.Server) {})
	if err != nil {
		return err
	}
	predicted, err := d.Predict(planned)
	if err != nil {
		return err
	}
	alone, err := d.Alone(s.Context, profiled)
	if err != nil {
		return err
	}
	return s.ladderOutcome(d, live, predicted, alone)
}

// ladder prints the capacity of each variant alone.
func (s *demoScreen) ladder(d *demo.Ladder, p *host.Profiled) {
	s.say("\n   %-10s %9s %12s %12s %14s\n", "variant", "accuracy", "1 image", "batch limit", "carries alone")
	for v, x := range p.Spec().Variants {
		limit, rate := d.Capacity(p, serving.VariantID(v))
		s.say("   %-10s %7.1f %% %12v %12d %12.0f/s\n", x.Name, 100*x.Accuracy,
			p.Latencies().Latency(serving.VariantID(v), 0, 1, 1).Round(time.Microsecond), limit, rate)
	}
	s.say("\n")
}

// ladderOutcome prints the measured run beside the predicted ones, with all variants and with the most accurate alone.
func (s *demoScreen) ladderOutcome(d *demo.Ladder, live *loadgen.Result, predicted, alone *report.Report) error {
	s.bar.clear()
	names, reports := []string{"live", "simulated", "best-alone"}, []*report.Report{live.Report, predicted, alone}
	written, err := saveReports(d.Dir,
		"sluice demo: live, simulated, and the most accurate variant alone (simulated)", names, reports)
	if err != nil {
		return err
	}
	if s.asJSON {
		return writeJSON(s.Stdout, map[string]any{
			"live": live, "simulated": predicted, "best_alone": alone,
			"differences": report.Compare(live.Report, predicted), "files": written,
		})
	}
	fmt.Fprintf(s.Stdout,
		"4. what was served, what the simulator predicts for the same arrivals, and what the most accurate variant "+
			"alone would\n   have done (simulated)\n\n")
	if err := report.SideBySide(s.Stdout, names, reports); err != nil {
		return err
	}
	if err := report.PartTable(s.Stdout, names[:2], live.Report, predicted); err != nil {
		return err
	}
	printSending(s.Stdout, live)
	fmt.Fprintln(s.Stdout)
	s.written(&d.Setting, written, "triton-like")
	return nil
}
