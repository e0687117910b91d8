package cli

import (
	"flag"
	"strings"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/planning"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
)

// rentFlags are the flags of 'sluice plan --budget'.
type rentFlags struct {
	budget  string // $/h, or from..to
	app     string
	bound   string
	others  int
	search  bool
	bounds  bool
	queries int
	seed    uint64
}

func declareRenting(fs *flag.FlagSet) *rentFlags {
	r := &rentFlags{}
	fs.StringVar(&r.budget, "budget", "", "rent machines for at most this many `$/h`, or for from..to")
	fs.StringVar(&r.app, "app", "", "the `app` that --budget is for")
	fs.StringVar(&r.bound, "bound", planning.QueueEstimate,
		"what pools are ranked by: queue (a linear program less what queues take), fluid (the program) or paper "+
			"(Kairos, Eq. 15), a `name`")
	fs.IntVar(&r.others, "runners-up", 5, "`number` of other pools shown with --budget")
	fs.BoolVar(&r.search, "search", false, "with --budget: simulate pools until the best is found")
	fs.BoolVar(&r.bounds, "bounds-only", false, "with --budget: simulate none")
	fs.IntVar(&r.queries, "queries", 5000, "`number` of queries of each simulated run, with --budget")
	fs.Uint64Var(&r.seed, "seed", 1, "`seed` of simulated runs, with --budget")
	return r
}

// defaultBudgets is the number of budgets in a range.
const defaultBudgets = 10

// rent runs 'sluice plan --budget'.
func (p *planFlags) rent(e *Env, r *rentFlags) error {
	ask, err := p.readRenting(r)
	if err != nil {
		return err
	}
	low, high, err := parseSpan(r.budget, maxRate)
	if err != nil {
		return err
	}
	ranged := low != high || p.frontier
	ask.Budgets = []float64{high}
	if ranged {
		ask.Budgets = budgetRange(low, high, p.points)
	}
	found, err := planning.RentMachines(e.Context, p.of, ask)
	if err != nil {
		return err
	}
	if err := p.writeRent(e, found, ranged); err != nil {
		return err
	}
	if v := &found.Budgets[0]; !ranged && v.Chosen == nil {
		if ask.Demand > 0 {
			return fault.Errorf(fault.Short, "no pool of at most %s $/h carries %s of app %q", quantity.Dollars(high),
				quantity.Rate(ask.Demand), found.App)
		}
		return fault.Errorf(fault.Short, "no pool of at most %s $/h serves queries of every size of app %q in time",
			quantity.Dollars(high), found.App)
	}
	return nil
}

// readRenting checks the flags and makes the question from them, without the budgets.
func (p *planFlags) readRenting(r *rentFlags) (*planning.Renting, error) {
	low, high, err := parseSpan(r.budget, maxRate)
	if err != nil || !(high > 0) || low > high {
		return nil, fault.Errorf(fault.Usage, "--budget %s: want $/h above 0, or FROM..TO", r.budget)
	}
	q, demanded := &p.question, len(p.demands) > 0
	if len(q.Changed) > 0 || len(q.Systems) > 1 || len(q.Demands) > 1 || p.after > 0 {
		return nil, fault.Errorf(fault.Usage,
			"--budget chooses the machines: leave out --what-if, --compare, --after and ranges of demand")
	}
	if r.bound != planning.PaperBound && r.bound != planning.FluidBound && r.bound != planning.QueueEstimate {
		return nil, fault.Errorf(fault.Usage, "--bound is %q, want %s, %s or %s", r.bound, planning.QueueEstimate,
			planning.FluidBound, planning.PaperBound)
	}
	if r.others < 0 || r.others > mostPoints || r.queries < 100 || r.queries > 1e7 {
		return nil, fault.Errorf(fault.Usage, "--runners-up is %d and --queries %d, want 0 to %d and 100 to 10,000,000",
			r.others, r.queries, mostPoints)
	}
	if r.bounds && (r.search || demanded) {
		return nil, fault.Errorf(fault.Usage, "--bounds-only tries no pool: leave out --search and --demand")
	}
	if demanded && (low != high || p.frontier) {
		return nil, fault.Errorf(fault.Usage,
			"what a demand costs is one budget: leave out --demand, or the range and --frontier")
	}
	ask := &planning.Renting{
		System: q.Systems[0], Bound: r.bound, RunnersUp: r.others, Queries: r.queries, Seed: r.seed,
	}
	switch {
	case r.bounds:
		ask.Effort = planning.NoPools
	case r.search:
		ask.Effort = planning.UntilSure
	}
	if p.system == "" {
		if ask.System, err = planning.RentingSystem(ask.System); err != nil {
			return nil, err
		}
	}
	names := strings.Join(p.of.AppNames(), ", ")
	if r.app != "" {
		if ask.App, err = p.of.AppID(r.app); err != nil {
			return nil, fault.Errorf(fault.Usage, "--app: app %q does not exist: use one of %s", r.app, names)
		}
	} else if len(p.of.Spec().Apps) > 1 {
		return nil, fault.Errorf(fault.Usage, "a budget is for one app: name one of %s with --app", names)
	}
	if demanded {
		if ask.Demand = q.Demands[0].Rates[ask.App]; ask.Demand <= 0 {
			return nil, fault.Errorf(fault.Usage, "--demand says nothing of app %q", p.of.AppNames()[ask.App])
		}
	}
	return ask, nil
}

// budgetRange returns points equally spaced budgets up to high. They start from low or, if low equals high, from
// high/points.
func budgetRange(low, high float64, points int) []float64 {
	if points == 0 {
		points = defaultBudgets
	}
	var out []float64
	for k := range points {
		if low == high {
			out = append(out, high*float64(k+1)/float64(points))
		} else {
			out = append(out, low+(high-low)*float64(k)/float64(max(points-1, 1)))
		}
	}
	return out
}
