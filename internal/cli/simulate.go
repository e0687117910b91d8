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
wrote and prints what was measured beside what is predicted.

Beside the utility (accuracy of answers in time, relative to the best) stands the most that any run could have
had: the fluid bound. A run above it is a fault of the simulator; it is printed all the same, says so, and the
exit status is 1.`,
		examples: "sluice simulate -f sluice.yaml --request-rate-range 50:400:50\nsluice simulate -f sluice.yaml " +
			"--rates 0:50,10:300,20:50 --out plots\nsluice simulate -f sluice.yaml --replay run.jsonl --json",
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
			out := fs.String("out", "", "`folder` for reports and plots")
			asJSON := fs.Bool("json", false, "print the reports as JSON")
			load := declareWorkload(fs)
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return fault.Errorf(fault.Usage, "%q is not understood", args)
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
				planned, err := profiled.Plan(e.Context)
				if err != nil {
					return err
				}
				s.Seed = *load.seed
				run := simulation{of: planned, how: s, out: *out, asJSON: *asJSON}
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

// simulation is a run to simulate and the options for its reports.
type simulation struct {
	of     *host.Planned
	how    host.Simulation
	out    string
	asJSON bool
}

// loads simulates one load after the other and prints the reports.
func (s *simulation) loads(e *Env, specs []workload.Spec) error {
	var reports []*report.Report
	var labels []string
	for i := range specs {
		e.bar.show(float64(i)/float64(len(specs)), "simulating "+span(&specs[i]))
		name := "simulated"
		if len(specs) > 1 {
			name = fmt.Sprintf("%g-per-s", specs[i].Apps[0].Rate)
		}
		r, err := s.of.Simulate(s.how, name, &specs[i])
		if err != nil {
			return err
		}
		reports, labels = append(reports, r), append(labels, name)
	}
	e.bar.clear()
	if s.asJSON {
		if err := writeJSON(e.Stdout, reports); err != nil {
			return err
		}
	} else if len(reports) == 1 {
		fmt.Fprintf(e.Stdout, "%s, system %s\n\n", span(&specs[0]), s.of.System().Name)
		if err := reports[0].Table(e.Stdout); err != nil {
			return err
		}
	} else if err := report.SideBySide(e.Stdout, labels, reports); err != nil {
		return err
	}
	if err := s.save(e, labels, reports); err != nil {
		return err
	}
	return possible(labels, reports)
}

// possible returns an error that names the first run that did better than is possible.
func possible(labels []string, reports []*report.Report) error {
	for k, r := range reports {
		if above := r.AboveBound(); above != "" {
			return fmt.Errorf("run %q did better than is possible: %s; this is a fault of the simulator, not of your "+
				"configuration: please report it with the configuration, the profile and the load", labels[k], above)
		}
	}
	return nil
}

// recorded simulates the arrivals of a recorded run and prints both reports side by side.
func (s *simulation) recorded(e *Env, path string) error {
	live, predicted, err := s.of.SimulateRun(s.how, path)
	if err != nil {
		return err
	}
	e.bar.clear()
	labels, reports := []string{"live", "simulated"}, []*report.Report{live, predicted}
	if s.asJSON {
		err = writeJSON(e.Stdout, map[string]any{
			"live": live, "simulated": predicted, "differences": report.Compare(live, predicted),
		})
	} else {
		err = report.SideBySide(e.Stdout, labels, reports)
	}
	if err == nil {
		err = s.save(e, labels, reports)
	}
	if err != nil {
		return err
	}
	return possible(labels, reports)
}

// save writes reports and plots into the folder of --out.
func (s *simulation) save(e *Env, labels []string, reports []*report.Report) error {
	if s.out == "" {
		return nil
	}
	names, err := saveReports(s.out, "sluice simulate, system "+s.of.System().Name, labels, reports)
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
