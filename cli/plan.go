package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/sluice-serving/sluice/algo/milp"
	"github.com/sluice-serving/sluice/planner/proteus"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/systems"
)

func planCommand() command {
	return command{
		name: "plan", summary: "what would run where for a demand, and how far the fleet goes",
		usage: "-f sluice.yaml [--demand APP=RATE ...] [--scale 0.5..2] [--compare NAMES] [--what-if CHANGE ...] " +
			"[--budget 2.5] [--frontier]",
		about: `
Asks a system's planner what it would run for a demand (the file's, unless --demand says otherwise) and prints
the plan: for each app what is served at which accuracy, for each kind of worker the variant, batch limit, share
and rate, and how far from the best plan it may be. Nothing is started. Ranges, --compare and --what-if print
one line per plan.

With --budget the machines are chosen, too: of all pools of the file's device types within a budget in $/h, the
one that carries most of one app, with its bounds, what it is expected to carry by simulation, and what a
million queries cost; with --demand, the cheapest that carries it. The workers of the file do not count then;
device_types[].most limits what can be had.

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
sluice plan -f examples/ranking.yaml --budget 0.5..3 --frontier --out plots`,
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			p := planning{}
			file := fs.String("f", "sluice.yaml", "configuration `file`")
			profiles := fs.String("profile", "", "profile `file` instead of those of the configuration")
			system := fs.String("system", "", "`name` of another system than the configuration's")
			var demands, changes []string
			fs.Func("demand",
				"`app=rate` in queries/s, or app=from..to for a range; the app may be left out when there is one; "+
					"repeat for more apps", func(s string) error {
					demands = append(demands, s)
					return nil
				})
			scale := fs.String("scale", "1", "`factor` on all demand, or from..to for a range")
			fs.IntVar(&p.points, "points", 0,
				"`number` of plans in a range (default 7), on the frontier (default 20) or of budgets (default 10)")
			compare := fs.String("compare", "", "`names` of systems to plan with, separated by commas")
			fs.Func("what-if",
				"`change` of the fleet to plan for beside the fleet as it is, such as '+2 gpu-large,-1 cpu'; repeat "+
					"for more", func(s string) error {
					changes = append(changes, s)
					return nil
				})
			fs.BoolVar(&p.frontier, "frontier", false,
				"the best accuracy at every throughput, up to what the fleet carries")
			fs.Float64Var(&p.after, "after", 0,
				"plan from what a plan for this `factor` of the demand left running, instead of from nothing")
			fs.StringVar(&p.out, "out", "", "`folder` for the frontier's plot and the result as JSON")
			r := renting{}
			fs.StringVar(&r.budget, "budget", "", "rent machines for at most this many `$/h`, or for from..to")
			fs.StringVar(&r.app, "app", "", "the app, by `name`, that --budget is for")
			fs.StringVar(&r.bound, "bound", paperBound,
				"what pools are ranked by: paper (Kairos, Eq. 15) or fluid (a linear program), a `name`")
			fs.IntVar(&r.others, "runners-up", 5, "`number` of other pools shown with --budget")
			fs.BoolVar(&r.search, "search", false, "with --budget: simulate pools until the best is found")
			fs.BoolVar(&r.bounds, "bounds-only", false, "with --budget: simulate none")
			fs.IntVar(&r.queries, "queries", 5000, "`number` of queries of each simulated run, with --budget")
			fs.Uint64Var(&r.seed, "seed", 1, "`seed` of simulated runs, with --budget")
			fs.BoolVar(&p.asJSON, "json", false, "print JSON")
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return exit(ExitUsage, "%q is not understood", args)
				}
				w, err := openWorld(e, *file)
				if err != nil {
					return err
				}
				w.unplanned = true
				if *system != "" {
					if err := w.useSystem(*system); err != nil {
						return err
					}
				}
				var paths []string
				if *profiles != "" {
					paths = []string{*profiles}
				}
				if err := w.believe(paths); err != nil {
					return err
				}
				p.world = w
				if err := p.ask(demands, *scale, *compare, *system != "", changes); err != nil {
					return err
				}
				if r.budget != "" {
					if err := p.rents(*system != ""); err != nil {
						return err
					}
					return p.runBudget(e, &r, len(demands) > 0)
				}
				return p.run(e)
			}
		},
	}
}

// planning is what the command line asks to be planned.
type planning struct {
	world    *world
	systems  []systems.System
	fleets   []variation // the first is the fleet as it is
	steps    []step
	base     []float64             // queries/s by AppID, not scaled; of a range its beginning
	before   map[string]*plan.Plan // by system: what --after had planned
	points   int
	after    float64
	frontier bool
	out      string
	asJSON   bool
}

// step is a demand to plan for.
type step struct {
	scale float64   // of the demand asked for; 0 when there is no range of it
	rates []float64 // queries/s by AppID
}

func (s *step) total() (out float64) {
	for _, r := range s.rates {
		out += r
	}
	return out
}

// one tells that a single plan was asked for.
func (p *planning) one() bool { return len(p.systems)*len(p.fleets)*len(p.steps) == 1 && !p.frontier }

func (p *planning) run(e *Env) error {
	for _, f := range p.fleets {
		f.warn(e)
	}
	if p.frontier {
		return p.runFrontier(e)
	}
	report := planReport{File: p.world.file.Name()}
	bar := newProgress(e)
	defer p.world.making.wait(e, bar)()
	total := len(p.systems) * len(p.fleets) * len(p.steps)
	for i := range p.steps {
		for k := range p.fleets {
			for _, s := range p.systems {
				bar.show(float64(len(report.Plans))/float64(total), "planning")
				v, err := p.plan(e.Context, s, &p.fleets[k], &p.steps[i], bar)
				if err != nil {
					return err
				}
				report.Plans = append(report.Plans, *v)
			}
		}
	}
	bar.done()
	if err := p.write(e, &report, nil); err != nil {
		return err
	}
	if v := &report.Plans[0]; p.one() && v.lacks() {
		return exit(ExitShortOf, "%s", v.verdict())
	}
	return nil
}

// plan makes one plan and reads it.
func (p *planning) plan(ctx context.Context, s systems.System, f *variation, st *step, bar *progress) (*planView,
	error) {
	w := f.world
	planner, err := w.newPlanner(s)
	if err != nil {
		return nil, err
	}
	r := plan.Request{Spec: w.Spec, Rates: st.rates}
	if r.Snapshot, err = p.running(ctx, s, f); err != nil {
		return nil, err
	}
	v := &planView{
		System: s.Name, Planner: planner.Name(), WhatIf: f.name, Scale: st.scale, Goal: s.Options.Planning.Goal,
		Demand: st.total(), Workers: len(w.Spec.Workers),
	}
	made, err := planner.Plan(ctx, r)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		v.nothing(w, st, err)
	} else {
		v.read(w, st, made)
	}
	exact, ok := planner.(*proteus.Planner)
	if p.one() && (ok || v.lacks() && v.Short == nil) { // a planner that knows what is short needs no adviser
		if exact == nil {
			if exact, err = w.adviser(); err != nil {
				return nil, err
			}
			v.Adviser = exact.Name()
		}
		watched := *exact
		watched.Solver = &watchedSolver{Solver: exact.Solver,
			most: float64(80 + 2*len(w.Spec.Stages) + 3*len(w.Spec.DeviceTypes)), show: func(share float64) {
				bar.show(share, "looking for what would mend it")
			}}
		d, err := proteus.Diagnose(ctx, &watched, r)
		if err != nil {
			return nil, err
		}
		v.Diagnosis = readDiagnosis(w, d, st, v)
	} else if ok && err == nil && st.total() > 0 {
		multiple, _, err := proteus.Reach(ctx, exact, r)
		if err != nil {
			return nil, err
		}
		reach := multiple * st.total()
		v.Reach = &reach
	}
	return v, nil
}

// watchedSolver tells how far a search of many solves is, if it takes as many as it may.
type watchedSolver struct {
	milp.Solver
	done, most float64
	show       func(share float64)
}

// Solve implements milp.Solver.
func (s *watchedSolver) Solve(ctx context.Context, p *milp.Program, l milp.Limits) (*milp.Solution, error) {
	s.show(s.done / max(s.most, s.done+1))
	s.done++
	return s.Solver.Solve(ctx, p, l)
}

// adviser answers questions about a fleet for systems whose planner does not search: what could be carried if every
// worker might host any variant.
func (w *world) adviser() (*proteus.Planner, error) {
	if w.solver == nil {
		var err error
		if w.solver, err = newSolver(); err != nil {
			return nil, err
		}
	}
	return &proteus.Planner{Profile: w.profile, Solver: w.solver}, nil
}

// running is what a plan for the demand that --after says has left running; nil for nothing.
func (p *planning) running(ctx context.Context, s systems.System, f *variation) (*fleet.Snapshot, error) {
	if p.after == 0 {
		return nil, nil
	}
	made, ok := p.before[s.Name]
	if !ok {
		planner, err := p.world.newPlanner(s)
		if err != nil {
			return nil, err
		}
		r := plan.Request{Spec: p.world.Spec, Rates: make([]float64, len(p.base))}
		for a, rate := range p.base {
			r.Rates[a] = rate * p.after
		}
		if made, err = planner.Plan(ctx, r); err != nil {
			return nil, exit(ExitConfig, "--after %g: %w", p.after, err)
		}
		if p.before == nil {
			p.before = make(map[string]*plan.Plan)
		}
		p.before[s.Name] = made
	}
	return f.snapshot(p.world, made), nil
}

// write prints a report and, with --out, leaves it in files, together with what save writes there.
func (p *planning) write(e *Env, r *planReport, save func(dir string) ([]string, error)) error {
	if p.asJSON {
		if err := writeJSON(e.Stdout, r); err != nil {
			return err
		}
	} else if err := p.print(e.Stdout, r); err != nil {
		return err
	}
	if p.out == "" {
		return nil
	}
	files, err := savePlan(p.out, r, save)
	if err == nil && !p.asJSON {
		fmt.Fprintf(e.Stdout, "\nwritten: %s\n", strings.Join(files, ", "))
	}
	return err
}

var errNoDemand = errors.New("there is no demand to scale: give --demand APP=RATE, or set apps[].demand in the file")
