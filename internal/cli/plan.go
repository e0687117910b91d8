package cli

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/planning"
)

func planCommand() command {
	return command{
		name: "plan", summary: "what would run where for a demand, and how far the fleet goes",
		usage: "-f sluice.yaml [--demand APP=RATE ...] [--scale 0.5..2] [--compare NAMES] [--what-if CHANGE ...] " +
			"[--budget 2.5] [--promise 0.8,0.001] [--frontier]",
		about: `
Asks a system's planner what it would run for a demand (the file's, unless --demand says otherwise) and prints
the plan: for each app what is served at which accuracy, for each kind of worker the variant, batch limit, share
and rate, and how far from the best plan it may be. Nothing is started. Ranges, --compare and --what-if print
one line per plan.

With --budget the machines are chosen, too: of all pools of the file's device types within a budget in $/h, the
one that carries most of one app, with its bounds, what it is expected to carry by simulation, and what a
million queries cost; with --demand, the cheapest that carries it. The workers of the file do not count then;
device_types[].most limits what can be had.

With --promise it searches, for each device type alone, the fewest workers with which the system's plan
promises an accuracy and a share of late queries; for systems that make promises, such as ramsis.

Demand that cannot be carried is answered with what keeps it from being carried and the changes that would each
mend it. The exit status is then 5, so that a script can ask whether a fleet is enough; it is 0 with a range,
--compare, --what-if or --frontier, which ask about many plans.`,
		examples: `sluice plan -f sluice.yaml --demand digits=400
sluice plan -f sluice.yaml --demand digits=400 --demand scenes=50..150 --points 5
sluice plan -f sluice.yaml --scale 0.5..2 --compare proteus,clipper-ht,clipper-ha
sluice plan -f sluice.yaml --demand digits=900 --what-if '+2 gpu-large,-1 cpu' --what-if '+4 cpu'
sluice plan -f sluice.yaml --frontier --out plots
sluice plan -f examples/ranking.yaml --budget 2.5
sluice plan -f examples/ranking.yaml --budget 2.5 --demand 80
sluice plan -f examples/ranking.yaml --budget 0.5..3 --frontier --out plots
sluice plan -f sluice.yaml --system ramsis --demand digits=400 --promise 0.8,0.001`,
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			p := declarePlanning(fs)
			r := declareRenting(fs)
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return fault.Errorf(fault.Usage, "%q is not understood", args)
				}
				opened, err := openUnder(e, p.file, p.system)
				if err != nil {
					return err
				}
				if p.of, err = opened.Profile(paths(p.profile)...); err != nil {
					return err
				}
				if err := p.read(); err != nil {
					return err
				}
				if r.budget != "" {
					return p.rent(e, r)
				}
				if p.promise != "" {
					return p.promises(e)
				}
				for i := range p.question.Changed {
					for _, d := range p.question.Changed[i].Unmeasured() {
						fmt.Fprintf(e.Stderr, "sluice plan: no variant was measured on device type %q, so that added "+
							"ones stay idle: run 'sluice profile' on one\n", d)
					}
				}
				if p.frontier {
					return p.frontiers(e)
				}
				return p.plans(e)
			}
		},
	}
}

// planFlags are the flags of 'sluice plan' and the question made from them.
type planFlags struct {
	file, profile, system string
	demands, changes      []string
	scale, compare        string
	points                int
	after                 float64
	frontier              bool
	promise               string // an accuracy and a share of late queries
	out                   string
	asJSON                bool

	of       *host.Profiled
	question planning.Question // once the flags are read
}

func declarePlanning(fs *flag.FlagSet) *planFlags {
	p := &planFlags{}
	fs.StringVar(&p.file, "f", "sluice.yaml", "configuration `file`")
	fs.StringVar(&p.profile, "profile", "", "profile `file` instead of those of the configuration")
	fs.StringVar(&p.system, "system", "", "another `system` than the configuration's")
	fs.Func("demand",
		"`app=rate` in queries/s, or app=from..to for a range; the app may be left out when there is one; repeat for "+
			"more apps", func(s string) error {
			p.demands = append(p.demands, s)
			return nil
		})
	fs.StringVar(&p.scale, "scale", "1", "`factor` on all demand, or from..to for a range")
	fs.IntVar(&p.points, "points", 0,
		"`number` of plans in a range (default 7), on the frontier (default 20) or of budgets (default 10)")
	fs.StringVar(&p.compare, "compare", "", "`names` of systems to plan with, separated by commas")
	fs.Func("what-if",
		"`change` of the fleet to plan for beside the fleet as it is, such as '+2 gpu-large,-1 cpu'; repeat for more",
		func(s string) error {
			p.changes = append(p.changes, s)
			return nil
		})
	fs.BoolVar(&p.frontier, "frontier", false, "the best accuracy at every throughput, up to what the fleet carries")
	fs.Float64Var(&p.after, "after", 0,
		"plan from what a plan for this `factor` of the demand left running, instead of from nothing")
	fs.StringVar(&p.promise, "promise", "",
		"the fewest workers of each device type that promise an accuracy and at most a share of late queries, "+
			"`ACCURACY,SHARE`")
	fs.StringVar(&p.out, "out", "", "`folder` for the frontier's plot and the result as JSON")
	fs.BoolVar(&p.asJSON, "json", false, "print JSON")
	return p
}

// plans makes plans and prints them.
func (p *planFlags) plans(e *Env) error {
	r, err := planning.Plans(e.Context, &p.question)
	if err != nil {
		return p.withFlagName(err)
	}
	if err := p.write(e, r, nil); err != nil {
		return err
	}
	if v := &r.Plans[0]; p.question.Single() && v.FallsShort() {
		return fault.Errorf(fault.Short, "%s", v.Verdict())
	}
	return nil
}

// withFlagName names the flag --after where an error is about it.
func (p *planFlags) withFlagName(err error) error {
	if r := (*planning.RunningError)(nil); errors.As(err, &r) {
		return fault.Errorf(fault.Config, "--after %g: %w", p.after, r.Err)
	}
	return err
}

const (
	defaultFrontier = 20 // plans on a frontier, one for each 5 % of the fleet's capacity
	mostPoints      = 1000
	maxFrontiers    = 8 // in one chart: more are not told apart
)

// frontiers makes frontiers and prints them.
func (p *planFlags) frontiers(e *Env) error {
	points := p.points
	if points == 0 {
		points = defaultFrontier
	}
	if points < 2 {
		return fault.Errorf(fault.Usage, "--points is %d, want at least 2 for a frontier", points)
	}
	if n := len(p.question.Systems) * (1 + len(p.question.Changed)); p.out != "" && n > maxFrontiers {
		return fault.Errorf(fault.Usage,
			"%d frontiers do not fit into one plot, %d do: name fewer systems or changes, or leave out --out", n,
			maxFrontiers)
	}
	r, err := planning.Frontiers(e.Context, &p.question, points)
	if err != nil {
		return p.withFlagName(err)
	}
	for _, v := range r.Frontiers {
		if len(v.Points) > 0 {
			return p.write(e, r, func(dir string) ([]string, error) { return plotFrontiers(dir, p.of.Opened, r) })
		}
	}
	if err := p.write(e, r, nil); err != nil {
		return err
	}
	return fault.Errorf(fault.Short,
		"there is no frontier: nothing of this demand can be carried; leave out --frontier to see why")
}

// write prints a report and, with --out, writes it and the files that save writes into a folder.
func (p *planFlags) write(e *Env, r *planning.Report, save func(dir string) ([]string, error)) error {
	e.bar.clear()
	var err error
	switch {
	case p.asJSON:
		err = writeJSON(e.Stdout, r)
	case len(r.Frontiers) > 0:
		err = printFrontiers(e.Stdout, r)
	case p.question.Single():
		err = printPlan(e.Stdout, &r.Plans[0])
	default:
		err = printPlans(e.Stdout, r.Plans)
	}
	if err != nil {
		return err
	}
	return p.save(e, r, save)
}

// save writes a report, and the files that more writes, into the folder of --out.
func (p *planFlags) save(e *Env, r any, more func(dir string) ([]string, error)) error {
	if p.out == "" {
		return nil
	}
	names, err := savePlan(p.out, r, more)
	if err == nil && !p.asJSON {
		fmt.Fprintf(e.Stdout, "\nwritten: %s\n", strings.Join(names, ", "))
	}
	return err
}
