package cli

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/engine/journal"
	"github.com/sluice-serving/sluice/measure/loadgen"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/sim"
	"github.com/sluice-serving/sluice/sim/truth"
)

func simulateCommand() command {
	return command{
		name: "simulate", summary: "run a sluice.yaml on a virtual clock against a load",
		usage: "-f sluice.yaml [--request-rate-range 100 | --rates ... | --workload FILE | --replay RUN]",
		about: `
The very scheduling code of 'serve', with machines that behave as the profile measured them: service times
scatter with the measured mean and standard deviation. --replay takes the arrivals of a run that 'load --record'
wrote and prints what was measured beside what is predicted.`,
		examples: "sluice simulate -f sluice.yaml --request-rate-range 50:400:50\nsluice simulate -f sluice.yaml " +
			"--rates 0:50,10:300,20:50 --out plots\nsluice simulate -f sluice.yaml --replay run.jsonl --json",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			file := fs.String("f", "sluice.yaml", "configuration `file`")
			profiles := fs.String("profile", "", "profile `file` instead of those of the configuration")
			system := fs.String("system", "", "`name` of another system than the configuration's")
			replay := fs.String("replay", "", "recorded `run` whose arrivals to repeat")
			overhead := fs.Duration("overhead", 0,
				"added to every batch's time: what a batch costs outside the model, a `duration`")
			delay := fs.Duration("plan-delay", planDelay,
				"how long a planner that is asked during the run takes, a `duration`")
			exact := fs.Bool("exact", false, "service times always take their mean")
			journalTo := fs.String("journal", "", "write all inputs and decisions to this `file`")
			out := fs.String("out", "", "`folder` for reports and plots")
			asJSON := fs.Bool("json", false, "print the reports as JSON")
			load := declareWorkload(fs)
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
				var paths []string
				if *profiles != "" {
					paths = []string{*profiles}
				}
				w.starts = true
				if err := w.believe(paths); err != nil {
					return err
				}
				run := simulation{
					world: w, overhead: *overhead, delay: *delay, exact: *exact, seed: *load.seed, journal: *journalTo,
				}
				if *replay != "" {
					return run.replay(e, *replay, *out, *asJSON)
				}
				specs, err := load.specs(w.appNames(), nil, w.sizes())
				if err != nil {
					return err
				}
				return run.loads(e, specs, *out, *asJSON)
			}
		},
	}
}

// planDelay is what the simulator takes a planner to think: more than the solver's usual time for some dozen workers.
const planDelay = 500 * time.Millisecond

// simulation is a way to simulate a world.
type simulation struct {
	world    *world
	overhead time.Duration
	delay    time.Duration // of a planner asked during the run
	exact    bool
	seed     uint64
	journal  string
	content  truth.Content // of the queries; nil for what the fan-outs say
}

// run simulates one load, with the clients of its sessions. duration is the span in which queries were offered.
func (s *simulation) run(name string, src workload.Source, stays []workload.Client,
	duration time.Duration) (*report.Report, error) {
	w := s.world
	en, err := w.engine()
	if err != nil {
		return nil, &status{ExitConfig, err}
	}
	noise := truth.Lognormal
	if s.exact {
		noise = truth.Exact
	}
	machines, err := truth.NewTable(w.Spec, w.measurements, noise, workload.Rand(s.seed, "service times"))
	if err != nil {
		return nil, &status{ExitConfig, err}
	}
	machines.Overhead = s.overhead
	recorder := report.NewRecorder(w.appInfos(), report.Options{})
	c := sim.Config{
		Spec: w.Spec, Engine: en, Truth: machines, Source: src, Clients: stays, Initial: w.plan, Warm: true,
		Planner: w.planner, PlanDelay: s.delay, Recorder: recorder, Content: s.content,
	}
	if s.journal != "" {
		f, err := os.Create(s.journal)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		j, err := journal.NewWriter(f, w.journalHeader())
		if err != nil {
			return nil, err
		}
		defer func() { _ = j.Flush() }()
		c.Observe = func(now serving.Time, in []engine.Input, out []engine.Decision) {
			err = errors.Join(err, j.Step(now, in, out))
		}
	}
	result, err := sim.Run(c)
	if err != nil {
		return nil, err
	}
	return recorder.Report(report.Meta{
		Name: name, Seed: s.seed, Duration: duration, Usage: &result.Usage, Variants: w.variantNames(),
	}), nil
}

// recorded is what the queries of a recorded run showed, as far as it tells; nil when it tells of none.
func (s *simulation) recorded(arrivals []workload.Arrival) truth.Content {
	spec := s.world.Spec
	told := false
	seen := make([][]int32, len(arrivals))
	for k := range arrivals {
		a := &arrivals[k]
		if a.Stages == nil {
			continue
		}
		told = true
		for _, st := range spec.Apps[a.App].Stages {
			seen[k] = append(seen[k], a.Stages[spec.Stages[st].Name])
		}
	}
	if !told {
		return nil
	}
	return truth.NewRecorded(spec, seen)
}

func (s *simulation) loads(e *Env, specs []workload.Spec, out string, asJSON bool) error {
	var reports []*report.Report
	var labels []string
	bar := newProgress(e)
	for i := range specs {
		bar.show(float64(i)/float64(len(specs)), "simulating "+span(&specs[i]))
		src, err := specs[i].Source(s.world.resolve)
		if err != nil {
			return &status{ExitConfig, err}
		}
		stays, err := specs[i].Clients(s.world.resolve)
		if err != nil {
			return &status{ExitConfig, err}
		}
		name := "simulated"
		if len(specs) > 1 {
			name = fmt.Sprintf("%g-per-s", specs[i].Apps[0].Rate)
		}
		r, err := s.run(name, src, stays, specs[i].Duration())
		if err != nil {
			return err
		}
		reports, labels = append(reports, r), append(labels, name)
	}
	bar.done()
	if asJSON {
		if err := writeJSON(e.Stdout, reports); err != nil {
			return err
		}
	} else if len(reports) == 1 {
		fmt.Fprintf(e.Stdout, "%s, system %s\n\n", span(&specs[0]), s.world.system.Name)
		if err := reports[0].Table(e.Stdout); err != nil {
			return err
		}
	} else if err := report.SideBySide(e.Stdout, labels, reports); err != nil {
		return err
	}
	return s.save(e, out, labels, reports, asJSON)
}

func (s *simulation) save(e *Env, out string, labels []string, reports []*report.Report, quiet bool) error {
	if out == "" {
		return nil
	}
	files, err := saveReports(out, "sluice simulate, system "+s.world.system.Name, labels, reports)
	if err == nil && !quiet {
		fmt.Fprintln(e.Stdout)
		for _, f := range files {
			fmt.Fprintf(e.Stdout, "written: %s\n", f)
		}
	}
	return err
}

// replay simulates the arrivals of a recorded run and sets what was measured beside what is predicted.
func (s *simulation) replay(e *Env, path, out string, asJSON bool) error {
	live, predicted, err := s.twin(path)
	if err != nil {
		return err
	}
	labels, reports := []string{"live", "simulated"}, []*report.Report{live, predicted}
	if asJSON {
		err = writeJSON(e.Stdout, map[string]any{
			"live": live, "simulated": predicted, "differences": report.Compare(live, predicted),
		})
	} else {
		err = report.SideBySide(e.Stdout, labels, reports)
	}
	if err != nil {
		return err
	}
	return s.save(e, out, labels, reports, asJSON)
}

// twin reads a recorded run and returns its report and that of its simulation.
func (s *simulation) twin(path string) (live, predicted *report.Report, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, &status{ExitConfig, err}
	}
	defer f.Close()
	pinned := func(a serving.AppID, name string) (serving.VariantID, error) {
		if v, ok := s.world.VariantOf(a, name); ok {
			return v, nil
		}
		return serving.None, fmt.Errorf("variant %q is not in %s", name, s.world.file.Name())
	}
	arrivals, header, err := workload.ReadArrivals(f, s.world.resolve, pinned)
	if err != nil {
		return nil, nil, exit(ExitConfig, "%s: %w", path, err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		return nil, nil, err
	}
	if live, err = loadgen.ReadReport(f, s.world.appInfos(), report.Options{}); err != nil {
		return nil, nil, exit(ExitConfig, "%s: %w", path, err)
	}
	s.content = s.recorded(arrivals)
	predicted, err = s.run("simulated", workload.FromSlice(arrivals), nil, time.Duration(header.DurationNS))
	return live, predicted, err
}

func (w *world) resolve(name string) (serving.AppID, error) {
	if a, ok := w.App(name); ok {
		return a, nil
	}
	return serving.None, fmt.Errorf("app %q is not in %s", name, w.file.Name())
}

func (w *world) appNames() []string {
	out := make([]string, len(w.Spec.Apps))
	for a := range out {
		out[a] = w.Spec.Apps[a].Name
	}
	return out
}

func (w *world) variantNames() []string {
	out := make([]string, len(w.Spec.Variants))
	for v := range out {
		out[v] = w.Spec.Variants[v].Name
	}
	return out
}

func (w *world) useSystem(name string) error {
	s, err := composition(configSystem(name))
	if err != nil {
		return &status{ExitUsage, err}
	}
	w.system = s
	return nil
}

func (w *world) journalHeader() journal.Header {
	measured := w.measurements
	if w.unmeasured {
		measured = serving.Measurements{}
	}
	return journal.Header{System: w.system.Name, Router: w.system.Router, Batcher: w.system.Batcher,
		BatchSize: w.system.Options.BatchSize, Timeout: w.system.Options.Timeout,
		Scaler: w.system.Scaler, Replan: w.system.Options.Replan,
		Learn: w.system.Options.Learn, Settings: w.system.Options.Settings(), Statistic: believed,
		Provides: w.planner.Provides(), Spec: w.Spec, Measurements: measured}
}
