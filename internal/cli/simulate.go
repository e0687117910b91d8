package cli

import (
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

func simulateCommand() command {
	return command{
		name: "simulate", summary: "run a sluice.yaml on a virtual clock against a load",
		usage: "-f sluice.yaml [--request-rate-range 100 | --rates ... | --workload FILE | --replay RUN]",
		about: `
The very scheduling code of 'serve', with machines that behave as the profile measured them: service times
scatter with the measured mean and standard deviation. --replay takes the arrivals of a run that 'load --record'
wrote and prints what was measured beside what is predicted, and which part of the latency explains the difference.

--seeds 20 runs everything that chance decides twenty times and prints between which numbers the runs lie;
--profile-error 0.1 lets the machines of each run be off by some 10 % from the profile, each variant by its own.

Beside the utility (accuracy of answers in time, relative to the best) stands the most that any run could have
had: the fluid bound. A run above it is a fault of the simulator; it is printed all the same, says so, and the
exit status is 1.`,
		examples: "sluice simulate -f sluice.yaml --request-rate-range 50:400:50\nsluice simulate -f sluice.yaml " +
			"--rates 0:50,10:300,20:50 --out plots\nsluice simulate -f sluice.yaml --request-rate-range 200 " +
			"--seeds 20 --profile-error 0.1\nsluice simulate -f sluice.yaml --replay run.jsonl --json",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			file := fs.String("f", "sluice.yaml", "configuration `file`")
			profile := fs.String("profile", "", "profile `file` instead of those of the configuration")
			system := fs.String("system", "", "another `system` than the configuration's")
			replay := fs.String("replay", "", "recorded `run` whose arrivals to repeat")
			var s host.Simulation
			fs.DurationVar(&s.Overhead, "overhead", 0,
				"added to every batch's time beside the overhead that the profile has, a `duration`")
			fs.DurationVar(&s.PlanDelay, "plan-delay", host.DefaultPlanDelay,
				"how long a planner that is asked during the run takes, a `duration`")
			fs.BoolVar(&s.Exact, "exact", false, "service times always take their mean")
			fs.StringVar(&s.Journal, "journal", "", "write all inputs and decisions to this `file`")
			fs.BoolVar(&s.NoBound, "no-bound", false,
				"leave out the bound, the most that any run could have had with these arrivals and machines")
			fs.BoolVar(&s.Foresight, "foresight", false,
				"print the bound by foresight instead, which is tighter and takes ten seconds and more")
			fs.Func("incident", "what goes wrong, a `KIND@AT[+FOR][:WORKER]`: lost@20s:w-0, leaves@20s+30s:w-0, "+
				"missing@20s+1m:w-0, takenover@20s+4s; may be given again", func(text string) error {
				x, err := host.ParseIncident(text)
				s.Incidents = append(s.Incidents, x)
				return err
			})
			fs.Func("machine-start", "how long a machine takes to come, as `TYPE=DURATION`; those of other types are "+
				"there; may be given again", func(text string) error { return startOf(&s, text) })
			seeds := fs.Int("seeds", 1, "`number` of runs with seeds of their own, from --seed on")
			fs.Float64Var(&s.ProfileError, "profile-error", 0, "by which `part` service times may be off from the "+
				"profile (standard deviation of the factor's logarithm)")
			out := fs.String("out", "", "`folder` for reports and plots")
			asJSON := fs.Bool("json", false, "print the reports as JSON")
			load := declareWorkload(fs)
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return fault.Errorf(fault.Usage, "%q is not understood", args)
				}
				switch {
				case *seeds < 1 || *seeds > mostSeeds:
					return fault.Errorf(fault.Usage, "--seeds is %d, want 1 to %d", *seeds, mostSeeds)
				case !(s.ProfileError >= 0 && s.ProfileError <= 1):
					return fault.Errorf(fault.Usage, "--profile-error is %v, want 0 to 1", s.ProfileError)
				case *seeds > 1 && s.Journal != "":
					return fault.Errorf(fault.Usage, "--journal is of one run, and --seeds asks for %d", *seeds)
				}
				opened, err := openUnder(e, *file, *system)
				if err != nil {
					return err
				}
				var specs []workload.Spec // read first: a plan takes time
				if *replay == "" {
					if specs, err = load.specs(opened.AppNames(), nil, expectedItems(opened)); err != nil {
						return err
					}
				}
				profiled, err := opened.Profile(paths(*profile)...)
				if err != nil {
					return err
				}
				s.Seed = *load.seed
				run := simulation{profiled: profiled, how: s, seeds: *seeds, out: *out, asJSON: *asJSON}
				if *replay != "" {
					return run.recorded(e, *replay)
				}
				return run.loads(e, specs)
			}
		},
	}
}

// startOf reads how long machines of a type take to come.
func startOf(s *host.Simulation, text string) error {
	name, value, ok := strings.Cut(text, "=")
	d, err := time.ParseDuration(value)
	if !ok || err != nil || d <= 0 {
		return fault.Errorf(fault.Usage, "%q is no TYPE=DURATION with a duration above 0", text)
	}
	if s.Starts == nil {
		s.Starts = make(map[string]time.Duration)
	}
	s.Starts[name] = d
	return nil
}

// mostSeeds bounds the runs of --seeds.
const mostSeeds = 1000

// simulation is a run to simulate and the options for its reports.
type simulation struct {
	profiled *host.Profiled
	how      host.Simulation
	seeds    int
	out      string
	asJSON   bool
}

// run calls f with a fresh plan for each seed: planners remember what they were asked. The reports come back by seed.
// part of all that is to be simulated is done before.
func (s *simulation) run(e *Env, what string, part, parts int, f func(*host.Planned, host.Simulation) (*report.Report,
	error)) (out []*report.Report, err error) {
	for k := range s.seeds {
		e.bar.show((float64(part)+float64(k)/float64(s.seeds))/float64(parts), "simulating "+what)
		planned, err := s.profiled.Plan(e.Context)
		if err != nil {
			return nil, err
		}
		how := s.how
		how.Seed += uint64(k)
		r, err := f(planned, how)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	e.bar.clear()
	return out, nil
}

// loads simulates one load after the other and prints the reports.
func (s *simulation) loads(e *Env, specs []workload.Spec) error {
	var reports, all []*report.Report // with the first seed, and with all
	var labels []string
	ranges := make(map[string][]report.Range)
	for i := range specs {
		name := "simulated"
		if len(specs) > 1 {
			name = fmt.Sprintf("%g-per-s", specs[i].Apps[0].Rate)
		}
		one := func(p *host.Planned, how host.Simulation) (*report.Report, error) {
			load := specs[i]
			load.Seed += how.Seed - s.how.Seed
			return p.Simulate(how, name, &load)
		}
		runs, err := s.run(e, span(&specs[i]), i, len(specs), one)
		if err != nil {
			return err
		}
		all = append(all, runs...)
		reports, labels = append(reports, runs[0]), append(labels, name)
		if s.seeds == 1 {
			continue
		}
		if ranges[name] = report.Ranges(runs, nil); s.asJSON {
			continue
		}
		fmt.Fprintf(e.Stdout, "%s, system %s\n\n", span(&specs[i]), s.profiled.System().Name)
		if err := report.RangeTable(e.Stdout, runs, "", nil); err != nil {
			return err
		}
	}
	var err error
	switch {
	case s.asJSON && s.seeds > 1:
		err = writeJSON(e.Stdout, map[string]any{"first": reports, "ranges": ranges})
	case s.asJSON:
		err = writeJSON(e.Stdout, reports)
	case s.seeds > 1:
	case len(reports) == 1:
		fmt.Fprintf(e.Stdout, "%s, system %s\n\n", span(&specs[0]), s.profiled.System().Name)
		err = reports[0].Table(e.Stdout)
	default:
		err = report.SideBySide(e.Stdout, labels, reports)
	}
	if err != nil {
		return err
	}
	if err := s.save(e, labels, reports); err != nil {
		return err
	}
	return possible(all)
}

// possible returns an error that names the first run that did better than is possible.
func possible(runs []*report.Report) error {
	for _, r := range runs {
		if above := r.AboveBound(); above != "" {
			return fmt.Errorf("run %q did better than is possible: %s; this is a fault of the simulator, not of your "+
				"configuration: please report it with the configuration, the profile and the load", r.Name, above)
		}
	}
	return nil
}

// recorded simulates the arrivals of a recorded run and prints both reports side by side.
func (s *simulation) recorded(e *Env, path string) error {
	record, err := s.profiled.ReadRun(path)
	if err != nil {
		return err
	}
	live := record.Live
	runs, err := s.run(e, path, 0, 1, func(p *host.Planned, how host.Simulation) (*report.Report, error) {
		return p.SimulateRun(how, record)
	})
	if err != nil {
		return err
	}
	labels, reports := []string{"live", "simulated"}, []*report.Report{live, runs[0]}
	if s.asJSON {
		out := map[string]any{
			"live": live, "simulated": runs[0], "differences": report.Compare(live, runs[0]),
		}
		if s.seeds > 1 {
			out["ranges"] = report.Ranges(runs, live)
		}
		err = writeJSON(e.Stdout, out)
	} else {
		if err = report.SideBySide(e.Stdout, labels, reports); err == nil {
			err = report.PartTable(e.Stdout, labels, live, runs[0])
		}
		if err == nil && s.seeds > 1 {
			fmt.Fprintln(e.Stdout)
			err = report.RangeTable(e.Stdout, runs, labels[0], live)
		}
	}
	if err == nil {
		err = s.save(e, labels, reports)
	}
	if err != nil {
		return err
	}
	return possible(runs)
}

// save writes reports and plots into the folder of --out.
func (s *simulation) save(e *Env, labels []string, reports []*report.Report) error {
	if s.out == "" {
		return nil
	}
	names, err := saveReports(s.out, "sluice simulate, system "+s.profiled.System().Name, labels, reports)
	if err == nil && !s.asJSON {
		fmt.Fprintln(e.Stdout)
		for _, f := range names {
			fmt.Fprintf(e.Stdout, "written: %s\n", f)
		}
	}
	return err
}

// expectedItems are the sizes of queries that a configuration expects, by app.
func expectedItems(o *host.Opened) map[string]workload.ItemsSpec {
	out := make(map[string]workload.ItemsSpec)
	for a := range o.Tables().Apps {
		out[o.Spec().Apps[a].Name] = o.Tables().Apps[a].Items
	}
	return out
}
