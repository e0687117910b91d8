package cli

import (
	"flag"
	"fmt"
	"io"
	"runtime"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/policies"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
)

func policyVerifyCommand() command {
	return command{
		name: "policy verify", summary: "what policies promise beside what they do in the simulator",
		usage: "-f sluice.yaml [--rates 50,100] [--seeds 5]",
		about: `
Simulates every policy under arrivals at its own rate, several times, and prints what it promised beside what
was observed. A promise is broken when the accuracy is lower, or the share of violations higher, than promised,
by more than chance explains: by a one-sided t-test over the seeds at 1 %. Batches take as long as planning
believes (95th percentiles), unless --measured has them scatter as they were measured. With --switching the
whole set is in force, as in a server, and the policy follows the load of the last half second.

A load is satisfiable when its policy promises no more violations than the app's objective allows (1 -
percentile). The exit status is 5 when a promise is broken at a satisfiable load.`,
		examples: "sluice policy verify -f sluice.yaml\nsluice policy verify -f sluice.yaml --rates 50,100 --seeds " +
			"20\nsluice policy verify -f sluice.yaml --measured --json",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			p := declarePolicy(fs,
				"verify the policies for these `rates` in queries/s only, separated by commas; made if need be")
			var v policies.Verification
			fs.IntVar(&v.Seeds, "seeds", 5, "simulations of every policy, 2 to 100")
			fs.IntVar(&v.Queries, "queries", 10_000, "queries in each")
			fs.BoolVar(&v.Measured, "measured", false, "batches scatter as they were measured")
			fs.BoolVar(&v.Switching, "switching", false, "the policy follows the load, as in a server")
			fs.IntVar(&v.Parallel, "parallel", runtime.NumCPU(), "runs at once")
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return fault.Errorf(fault.Usage, "%q is not understood", args)
				}
				if v.Seeds < 2 || v.Seeds > 100 || v.Queries < 100 || v.Parallel < 1 {
					return fault.Errorf(fault.Usage,
						"--seeds is %d, --queries %d and --parallel %d, want 2 to 100, at least 100 and at least 1",
						v.Seeds, v.Queries, v.Parallel)
				}
				o, sets, rates, err := p.make(e)
				if err != nil {
					return err
				}
				v.Rates = rates
				rows, err := sets.Verify(e.Context, v)
				e.bar.clear()
				if err != nil {
					return err
				}
				if *p.asJSON {
					err = writeJSON(e.Stdout, rows)
				} else {
					err = printVerified(e.Stdout, o.System().Name, &v, rows)
				}
				if err != nil {
					return err
				}
				broken := 0
				for _, r := range rows {
					if r.Verdict == policies.Broken && r.Satisfiable {
						broken++
					}
				}
				if broken > 0 {
					return fault.Errorf(fault.Short, "%d of %d promises are broken at loads that can be satisfied",
						broken, len(rows))
				}
				return nil
			}
		},
	}
}

// printVerified writes the promised and the observed values of each policy, app by app.
func printVerified(w io.Writer, system string, v *policies.Verification, verified []policies.Verified) error {
	how := "batches take as long as planning believes"
	if v.Measured {
		how = "batches scatter as measured"
	}
	if v.Switching {
		how += ", the policy follows the load"
	}
	fmt.Fprintf(w, "system %s, %d simulations of %d queries for each policy; %s\n", system, v.Seeds,
		v.Queries, how)
	kept, beyond := 0, 0
	for from := 0; from < len(verified); {
		rows := [][]string{{"RATE", "ACCURACY PROMISED", "OBSERVED", "VIOLATIONS PROMISED", "OBSERVED", "VERDICT"}}
		to := from
		for ; to < len(verified) && verified[to].App == verified[from].App; to++ {
			r := &verified[to]
			verdict := r.Verdict
			if verdict == policies.Kept {
				kept++
			}
			if r.Promised.Violation < 0 {
				verdict += ", no promise of violations"
			} else if !r.Satisfiable {
				verdict += ", not satisfiable"
				beyond++
			}
			rows = append(rows, []string{
				quantity.Rate(r.Rate), quantity.Accuracy(r.Promised.Accuracy), quantity.Accuracy(r.Observed.Accuracy),
				quantity.SmallShare(r.Promised.Violation), quantity.SmallShare(r.Observed.Violation), verdict,
			})
		}
		fmt.Fprintf(w, "\napp %s\n\n", verified[from].App)
		if err := columns(w, "rrrrrl", rows); err != nil {
			return err
		}
		from = to
	}
	fmt.Fprintf(w, "\n%d of %d promises are kept; %d of the loads cannot be satisfied\n", kept, len(verified), beyond)
	return nil
}
